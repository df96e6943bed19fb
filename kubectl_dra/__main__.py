"""`python -m kubectl_dra`: the command from a checkout."""

import signal
import sys

try:
    from kubectl_dra.cli import main

    main()
except KeyboardInterrupt:  # while modules are imported
    sys.exit(128 + signal.SIGINT)
