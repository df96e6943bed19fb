"""What is decided for the cluster as a whole; today that is allocation."""
