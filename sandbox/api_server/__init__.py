"""A Kubernetes API server in the process: the real protocol over HTTPS, for the kinds that the driver deals with.

    async with ApiServer(data=Path("state.sqlite")) as server:
        server.kubeconfig(Path("kubeconfig"))   # for kubectl, the driver's own client, or any other

Requests pass the layers of a real one: `server` (HTTP, authentication, content types) reads them, `registry` decides
what they mean for the objects (defaults, gates, validation, versions), `store` keeps the objects and their history.
"""

from sandbox.api_server.server import ApiServer

__all__ = ["ApiServer"]
