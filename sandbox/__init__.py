"""An embedded cluster in one process: a real API server for the kinds in use, nodes with the real node plugin."""
