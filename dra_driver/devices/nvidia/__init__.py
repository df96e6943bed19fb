"""NVIDIA GPUs and their MIG partitions, over the vendor's management library (NVML)."""
