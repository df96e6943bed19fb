"""The cluster process: it allocates claims where kube-scheduler does not."""
