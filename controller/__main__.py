"""`python -m controller` is `dra-controller`."""

from controller.cli import main

main()
