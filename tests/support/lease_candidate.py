"""A process that is a candidate for a Lease, and while it leads writes an Event every few milliseconds.

`python -m tests.support.lease_candidate KUBECONFIG IDENTITY`
"""

import asyncio
import sys
from pathlib import Path

from dra_driver.api.core_v1 import Event, ObjectReference
from dra_driver.api.meta_v1 import ObjectMeta
from dra_driver.kube.client import ApiClient
from dra_driver.kube.credential import Credential
from dra_driver.kube.lease import LeaderElection
from dra_driver.kube.resource import EVENTS

NAMESPACE, NAME = "dra-driver", "dra-controller"


def quick_election(client: ApiClient, identity: str) -> LeaderElection:
    """Make a candidate that needs no patience."""
    return LeaderElection(
        client,
        namespace=NAMESPACE,
        name=NAME,
        identity=identity,
        lease_duration_s=1.0,
        renew_deadline_s=0.6,
        retry_period_s=0.1,
    )


async def run(kubeconfig: Path, identity: str) -> None:
    """Stand for leadership until the process is ended."""
    credential = await Credential.load(kubeconfig)
    async with ApiClient(credential, user_agent=identity) as client:
        election = quick_election(client, identity)
        guarded = client.guarded(election.confirm)

        async def lead() -> None:
            while True:
                await guarded.create(EVENTS, an_event(identity))
                await asyncio.sleep(0.005)

        await election.run(lead)


def an_event(identity: str) -> Event:
    """Build an Event with a name of its own."""
    about = ObjectReference(kind="Lease", namespace=NAMESPACE, name="dra-controller")
    return Event(metadata=ObjectMeta(generate_name=f"{identity}-", namespace=NAMESPACE), involved_object=about)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
