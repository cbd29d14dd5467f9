"""`python -m echokit_py` is `echokit-py`."""

import sys

from echokit_py.cli import main

if __name__ == "__main__":
    sys.exit(main())
