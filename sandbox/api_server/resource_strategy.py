"""What is particular to the kinds of resource.k8s.io: they are read into the driver's own types, which check them."""

from typing import Any, ClassVar

import msgspec

from dra_driver.api import codec
from dra_driver.errors import InvalidError
from sandbox.api_server.kind import Kind, Object
from sandbox.api_server.refusal import bad_request
from sandbox.api_server.strategy import Strategy


class ResourceStrategy(Strategy):
    """How a kind of resource.k8s.io is written; `struct` is its type."""

    counts_generations: ClassVar = True
    keeps_metadata_in_status = True

    def __init__(self, kind: Kind, struct: type[Any]) -> None:
        super().__init__(kind)
        self._struct = struct

    def canonicalize(self, value: Object) -> Object:
        """Write quantities, and what is empty, as the API does."""
        found = self.read(value)
        built: Object = msgspec.json.decode(codec.encode(found))
        return {"metadata": value["metadata"]} | {
            name: part for name, part in built.items() if name not in ("kind", "apiVersion", "metadata")
        }

    def read(self, value: Object) -> Any:
        """Give the object as its type. Raises Refusal."""
        try:
            return codec.decode(msgspec.json.encode(value), self._struct)
        except InvalidError as error:
            kind = self.kind
            raise bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
                              f"{'; '.join(map(str, error.errors))}") from None  # fmt: skip


class ClaimStrategy(ResourceStrategy):
    """Claims and templates have no generations, since their specs never change."""

    counts_generations = False
