"""One training loop for every task: distribution, steps, checkpoints, run record."""
