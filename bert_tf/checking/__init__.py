"""Checks of every task's data: which task has which options and checks."""
