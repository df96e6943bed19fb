"""`kubectl dra demo`: claims from YAML to prepared containers, in a cluster in this process."""
