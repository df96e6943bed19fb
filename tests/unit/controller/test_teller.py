from dataclasses import dataclass, field

from controller.decision import Code, Refuse
from controller.teller import REASON, Patience, Teller
from dra_driver.api.core_v1 import ObjectReference, Pod
from dra_driver.api.resource_v1 import ResourceClaim
from dra_driver.kube.event import EventType
from dra_driver.kube.resource import key_of
from tests.support.control import a_claim, a_pod
from tests.support.control_object import read
from tests.support.kube import running
from tests.support.wait import until

POD = read(a_pod(), Pod)
CLAIM = read(a_claim(), ResourceClaim)


@dataclass
class Sink:
    told: list[tuple[str, str, str]] = field(default_factory=list)

    def record(self, target: ObjectReference, reason: str, message: str, *, type: EventType) -> None:  # noqa: A002 - its name in the API
        assert type is EventType.WARNING
        self.told.append((target.kind, reason, message))


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def a_teller(sink: Sink, clock: Clock, delay_s: float = 0.0) -> Teller:
    patience = Patience(refused_s=delay_s, missing_s=60.0, again_s=0.0)
    return Teller(sink, lambda _, refusal: refusal.text, patience, clock)


async def test_a_refusal_is_told_on_the_pod_and_the_claims_that_are_not_served() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    async with running(teller.run()):
        teller.refuse(POD, Refuse(Code.DEVICES, "none free", (CLAIM,)))
        await until(lambda: len(sink.told) == 2)
    assert sink.told == [("Pod", REASON, "none free"), ("ResourceClaim", REASON, "none free")]


async def test_a_pod_with_hundreds_of_claims_is_told_on_a_few_of_them() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    claims = tuple(read(a_claim(f"claim-{index}", uid=f"uid-{index}"), ResourceClaim) for index in range(500))
    async with running(teller.run()):
        teller.refuse(POD, Refuse(Code.DEVICES, "none free", claims))
        await until(lambda: sink.told)
    assert [kind for kind, _, _ in sink.told] == ["Pod", *["ResourceClaim"] * 16]


async def test_the_latest_refusal_is_told_and_none_that_was_cleared() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock(), delay_s=0.01)
    other = read(a_pod("pod-2"), Pod)
    async with running(teller.run()):
        teller.refuse(POD, Refuse(Code.DEVICES, "first"))
        teller.refuse(POD, Refuse(Code.DEVICES, "second"))
        teller.refuse(other, Refuse(Code.DEVICES, "third"))
        teller.clear(key_of(other))
        await until(lambda: sink.told)
    assert sink.told == [("Pod", REASON, "second")]


async def test_a_refusal_that_was_told_is_told_again_once_it_is_another() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    async with running(teller.run()):
        teller.refuse(POD, Refuse(Code.DEVICES, "first"))
        await until(lambda: len(sink.told) == 1)
        teller.refuse(POD, Refuse(Code.DEVICES, "second"))
        await until(lambda: len(sink.told) == 2)
    assert sink.told == [("Pod", REASON, "first"), ("Pod", REASON, "second")]


async def test_what_mostly_passes_by_itself_is_told_later() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    other = read(a_pod("pod-2"), Pod)
    async with running(teller.run()):
        teller.refuse(other, Refuse(Code.CLAIM_MISSING, "not made yet"))
        teller.refuse(POD, Refuse(Code.DEVICES, "none free"))
        await until(lambda: sink.told)
        teller.clear_all()
    assert [text for _, _, text in sink.told] == ["none free"]


def test_the_same_text_is_told_once_an_hour() -> None:
    sink, clock = Sink(), Clock()
    teller = a_teller(sink, clock)
    for now, text in ((0.0, "a"), (3599.0, "a"), (3600.0, "a"), (3601.0, "b"), (3602.0, "a"), (3603.0, "a")):
        clock.now = now
        teller.warn(POD, REASON, text)
    assert [text for _, _, text in sink.told] == ["a", "a", "b", "a"]


def test_reasons_and_objects_are_told_apart() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    teller.warn(POD, "One", "text")
    teller.warn(POD, "Two", "text")
    teller.warn(CLAIM, "One", "text")
    assert len(sink.told) == 3


async def test_what_needs_no_words_is_not_told() -> None:
    sink = Sink()
    teller = a_teller(sink, Clock())
    async with running(teller.run()):
        teller.refuse(POD, Refuse(Code.FOREIGN, ""))
        teller.refuse(read(a_pod("pod-2"), Pod), Refuse(Code.DEVICES, "x"))
        await until(lambda: sink.told)
    assert len(sink.told) == 1
