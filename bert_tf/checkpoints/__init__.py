"""Weights on disk, in the release's own format.

Read in this order: names, native, state_file, rotation.
"""
