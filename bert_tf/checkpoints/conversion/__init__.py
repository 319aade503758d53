"""Converts a checkpoint to another format and verifies the result.

`workflow` shows the whole process on one page; `verification` checks that the result is
the same model; `report` describes it.
"""
