"""Questions to Kubernetes' own code and to ours, and the comparison of the answers."""
