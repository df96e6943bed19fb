from prometheus_client import CollectorRegistry

from dra_driver.kube.backoff import Backoff
from kubeletplugin.publish.metric import PublishMetrics
from kubeletplugin.publish.publisher import Publisher
from kubeletplugin.publish.timing import PublishTiming
from tests.support.builder import DRIVER, NODE


def a_publisher(quiet_s: float) -> Publisher:
    timing = PublishTiming(quiet_s=quiet_s, mend=Backoff(initial_s=0.1, max_s=1.0, jitter=0.0))
    return Publisher(
        store=None,  # type: ignore[arg-type]
        events=None,  # type: ignore[arg-type]
        metrics=PublishMetrics(CollectorRegistry()),
        driver=DRIVER,
        node_name=NODE,
        timing=timing,
    )


async def test_somebody_who_keeps_changing_slices_is_answered_ever_more_slowly() -> None:
    publisher = a_publisher(quiet_s=60)
    assert [publisher._pace(mended=True) for _ in range(6)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


async def test_changes_far_apart_are_mended_at_once() -> None:
    publisher = a_publisher(quiet_s=0)
    assert [publisher._pace(mended=True) for _ in range(3)] == [0.1, 0.1, 0.1]


async def test_own_changes_are_not_slowed() -> None:
    publisher = a_publisher(quiet_s=60)
    publisher._pace(mended=True)
    assert publisher._pace(mended=False) == 0.0
