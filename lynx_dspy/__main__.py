"""`python -m lynx_dspy` is the `lynx` command."""

import sys

from lynx_dspy.cli import main

sys.exit(main())
