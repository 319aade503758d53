"""Weights on disk, in the release's own format and in those of others.

Read in this order: names, native, state_file, rotation; head, source, native_folder,
formats, loading, starting_point.
"""
