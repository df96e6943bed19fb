"""The kubelet's gRPC contracts. The `_pb2` modules are generated from the `.proto` files by `make proto`."""
