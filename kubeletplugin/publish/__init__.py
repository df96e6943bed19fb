"""ResourceSlices of the node: laid out from the inventory (pure), and kept in the API server as laid out (effects)."""
