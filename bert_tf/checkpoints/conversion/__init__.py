"""Converts a checkpoint to another format and verifies the result.

`workflow` shows the whole process on one page; `target` places the result, complete or
not at all; `verification` checks that it is the same model; `report` describes it.
"""
