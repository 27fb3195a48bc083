"""`python -m gpbench`: the same as the command `gpbench`; every job of a sweep starts here."""

import sys

from gpbench.cli import main

sys.exit(main())
