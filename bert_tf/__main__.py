"""`python -m bert_tf`: the command `bert_tf`."""

import sys

from bert_tf import command_line

if __name__ == "__main__":
    sys.exit(command_line.main())
