"""What kube-controller-manager and kube-scheduler do for claims and the Pods that use them."""
