"""What `status.devices` of a claim says of this plugin's devices."""
