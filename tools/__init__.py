"""The command line tools in pipeline order of their work; see `--help` of each.

Installed, this folder is the package `bert_tf.tools`. A tool reads its options, makes
one call into the library and prints the report.
"""
