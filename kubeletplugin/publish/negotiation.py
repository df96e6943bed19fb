"""Finds out what an API server keeps and takes, before anything is published, and settles on that.

Every slice that is about to be written is created with `dryRun=All` first, under a name that never is stored.
A dry-run *update* would not do: an API server keeps the fields of a disabled gate where the stored object has them.
What comes back lacks the fields of gates that are off; the pool is laid out anew without them until nothing is lost.
A device that the server refuses is left out alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import msgspec.structs

from dra_driver.api.resource_v1 import ResourceSlice
from dra_driver.devices.model import Inventory
from dra_driver.errors import ApiInvalidError
from kubeletplugin.publish.drop import DroppedField, diff_kept, reduce_features
from kubeletplugin.publish.feature import ALL_FEATURES, Features
from kubeletplugin.publish.layout import Pool, PoolOwner, Refusals, build_pool
from kubeletplugin.publish.offer import SharePolicy
from kubeletplugin.publish.refusal import join_refusals, parse_refusals
from kubeletplugin.publish.store import SliceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is known of the API server: the features that it keeps, the fields it drops, the devices it refuses."""

    features: Features = ALL_FEATURES
    dropped: frozenset[DroppedField] = frozenset()
    refusals: Refusals = field(default_factory=Refusals)

    def after_drop(self, dropped: Sequence[DroppedField]) -> "Terms":
        """Return the terms once these fields were seen to be dropped."""
        features = reduce_features(self.features, dropped)
        return replace(self, features=features, dropped=self.dropped | frozenset(dropped))

    def after_refusal(self, item: ResourceSlice, error: ApiInvalidError) -> "Terms":
        """Return the terms once a slice was refused. Raises the error if it names nothing that can be left out."""
        refusals = join_refusals(self.refusals, parse_refusals(item, str(error)))
        if refusals == self.refusals:
            raise error
        return replace(self, refusals=refusals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """What is to be published."""

    inventory: Inventory
    owner: PoolOwner
    shares: SharePolicy

    def build_pool(self, terms: Terms) -> Pool:
        """Return the pool that is possible on these terms."""
        return build_pool(
            self.inventory,
            owner=self.owner,
            shares=self.shares,
            features=terms.features,
            refusals=terms.refusals,
        )


async def read_terms(
    store: SliceStore,
    build: Callable[[Terms], Pool],
    terms: Terms,
    choose: Callable[[Pool], Sequence[ResourceSlice]],
) -> Terms:
    """Return terms on which the API server takes the slices that `choose` picks from the pool, and keeps all of them.

    `build` gives the pool that is possible on some terms. Ends, since each round takes away a feature or a device.
    Raises ApiError.
    """
    while True:
        settled = terms
        for item in choose(build(terms)):
            settled = await _read_terms_of(store, item, settled)
        if (settled.features, settled.refusals) == (terms.features, terms.refusals):
            return settled
        terms = settled


async def _read_terms_of(store: SliceStore, item: ResourceSlice, terms: Terms) -> Terms:
    sent = _never_stored(item)
    try:
        kept = await store.create_slice(sent, dry_run=True)
    except ApiInvalidError as error:
        return terms.after_refusal(item, error)
    return terms.after_drop(diff_kept(sent, kept))


def _never_stored(item: ResourceSlice) -> ResourceSlice:
    """Give the slice a name that no slice has: `probe` is where the others have the digits of their position."""
    name = "probe" + item.metadata.name[5:]
    metadata = msgspec.structs.replace(item.metadata, name=name, uid="", resource_version="", creation_timestamp=None)
    return msgspec.structs.replace(item, metadata=metadata)
