"""The node process: publishes the node's devices as ResourceSlices and prepares claims for the kubelet."""
