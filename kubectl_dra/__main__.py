"""`python -m kubectl_dra`: the command from a checkout."""

from kubectl_dra.cli import main

main()
