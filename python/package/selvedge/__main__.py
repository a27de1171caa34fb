"""The program `selvedge`: `python -m selvedge --help`."""

import signal
import sys

from . import _native


def main():
    # Python's handler would wait for the end of the command.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native._run_program(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
