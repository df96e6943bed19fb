import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.core_v1 import ObjectReference
from dra_driver.kube.event_series import Occurrence, SeriesBook, Topic, build_message, build_name

NODE = ObjectReference(kind="Node", name="node-a", uid="u")
TOPIC = Topic(NODE, "Warning", "PrepareFailed", "no")


def test_occurrences_add_up() -> None:
    total = Occurrence(TOPIC, "t1", "t1").plus(Occurrence(TOPIC, "t2", "t3", count=2))
    assert (total.first, total.last, total.count) == ("t1", "t3", 3)


def test_an_event_is_counted_up_until_the_server_may_have_forgotten_it() -> None:
    book = SeriesBook()
    assert book.series_of(TOPIC, 0.0) is None
    book.record(TOPIC, "node-a.1", 4, 0.0)
    series = book.series_of(TOPIC, 2999.0)
    assert series is not None
    assert (series.name, series.count) == ("node-a.1", 4)
    assert book.series_of(TOPIC, 3000.0) is None


def test_an_object_has_25_writes_and_then_one_every_five_minutes() -> None:
    book = SeriesBook()
    assert [book.take_budget(NODE, 0.0) for _ in range(26)] == [True] * 25 + [False]
    assert not book.take_budget(NODE, 299.0)
    assert book.take_budget(NODE, 300.0)


def test_one_object_does_not_use_the_budget_of_another() -> None:
    book = SeriesBook()
    while book.take_budget(NODE, 0.0):
        pass
    assert book.take_budget(ObjectReference(kind="Node", name="node-b"), 0.0)


def test_what_is_remembered_is_bounded() -> None:
    book = SeriesBook()
    topics = [Topic(NODE, "Normal", "R", str(number)) for number in range(5000)]
    for topic in topics:
        book.record(topic, "n", 1, 0.0)
    assert sum(book.series_of(topic, 0.0) is not None for topic in topics) == 4096
    assert book.series_of(topics[-1], 0.0) is not None


@given(st.text())
def test_a_message_is_never_longer_than_the_server_takes(text: str) -> None:
    assert len(build_message(text * 100).encode()) <= 1024


@pytest.mark.parametrize(
    ("text", "expected"), [("short", "short"), ("é" * 512, "é" * 512), ("é" * 513, "é" * 510 + "…"), ("\ud800", "?")]
)
def test_a_message_is_cut_between_characters(text: str, expected: str) -> None:
    assert build_message(text) == expected


@pytest.mark.parametrize(("name", "expected"), [("node-a", "node-a.x"), ("a" * 300, "a" * 251 + ".x")])
def test_a_name_fits(name: str, expected: str) -> None:
    assert build_name(ObjectReference(name=name), "x") == expected
