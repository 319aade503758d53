"""Converts a checkpoint to another format and verifies the result.

`workflow` shows the whole process on one page: `source` (what to convert), `target`
(where it goes, complete or not at all), `comparison` and `probe` (whether it is the
same model), `report`.
"""
