"""Checks of training data for every task, before training starts."""
