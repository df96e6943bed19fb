"""`python -m kubeletplugin` is `dra-kubeletplugin`."""

from kubeletplugin.cli import main

main()
