"""The command line tools, one entry point each.

Installed, this folder is the package `bert_tf.tools`. A tool reads its options, makes
one call into the library and prints the report. `bert_tf --help` lists the tools in
the order of the work.
"""
