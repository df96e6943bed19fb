"""What the kubelet meets of this plugin: sockets, the services behind them, and which of two processes has them."""
