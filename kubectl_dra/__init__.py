"""The command `kubectl dra`: what DRA does in a cluster, shown and explained."""
