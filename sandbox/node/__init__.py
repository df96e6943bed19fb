"""A simulated node: a kubelet that keeps the real one's rules, beside the real plugin with simulated devices."""
