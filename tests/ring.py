"""Marks the parameters of a test that `make test` leaves to `make test-slow`.

The rule is in CONTRIBUTING.md: a behavior is in `make test` once, with the cheapest
parameters that protect it.
"""

import pytest


def slow(*values, **named):
    """Returns a set of parameters that only `make test-slow` tests."""
    return pytest.param(*values, **named, marks=pytest.mark.slow)


def quick(*names, of):
    """Returns the values of `of`; those that are not in `names` are slow."""
    return [value if value in names else slow(value) for value in of]
