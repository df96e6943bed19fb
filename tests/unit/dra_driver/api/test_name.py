from collections.abc import Callable

import pytest

from dra_driver.api import name

Validator = Callable[[str], tuple[str, ...]]

GOOD: list[tuple[Validator, list[str]]] = [
    (name.validate_dns_label, ["a", "0", "gpu-0", "a" * 63]),
    (name.validate_dns_subdomain, ["a", "node.example.com", "a" * 253, "a.0-b"]),
    (name.validate_driver_name, ["gpu.example.com", "GPU.Example.com", "a" * 63]),
    (name.validate_pool_name, ["node-a", "rack-1/node-a", "a/b/c", "a" * 253]),
    (name.validate_c_identifier, ["a", "_", "model_2", "A" * 32]),
    (name.validate_qualified_name, ["memory", "gpu.example.com/memory", "a" * 63 + "/" + "b" * 32]),
    (name.validate_fully_qualified_name, ["resource.kubernetes.io/numaNode"]),
    (name.validate_label_key, ["a", "dra-driver.io/unhealthy", "A.b_c-d", "a" * 253 + "/" + "b" * 63]),
    (name.validate_label_value, ["", "a", "Ecc_Error-1.2", "a" * 63]),
    (name.validate_extended_resource_name, ["example.com/gpu"]),
]
BAD: list[tuple[Validator, list[str]]] = [
    (name.validate_dns_label, ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "é", "a\n", "٣"]),
    (name.validate_dns_subdomain, ["", "A", ".a", "a.", "a..b", "a/b", "a" * 254, "a\n"]),
    (name.validate_driver_name, ["", "a/b", "a_b", "a" * 64, "\u212a.example"]),
    (name.validate_pool_name, ["", "/", "a//b", "/a", "a/", "A", "a" * 254]),
    (name.validate_c_identifier, ["", "1a", "a-b", "a.b", "A" * 33, "é", "a\n"]),
    (name.validate_qualified_name, ["", "/", "a/", "/a", "a/b/c", "a-b", "a b/c", "d" * 64 + "/a"]),
    (name.validate_fully_qualified_name, ["", "memory", "/memory", "a/b/c", "GPU.example.com/x"]),
    (name.validate_label_key, ["", "/a", "a/", "a/b/c", "-a", "A/b", "a" * 64, "a" * 254 + "/b"]),
    (name.validate_label_value, ["-", "a b", "a/b", "_a", "a" * 64, "é"]),
    (
        name.validate_extended_resource_name,
        ["", "gpu", "kubernetes.io/gpu", "x.kubernetes.io/gpu", "requests.a/b", "a/b/c", "/a", "a" * 245 + "/b"],
    ),
]


def table(rows: list[tuple[Validator, list[str]]]) -> list[object]:
    return [
        pytest.param(validate, text, id=f"{validate.__name__.removeprefix('validate_')}:{text[:20]!r}:{len(text)}")
        for validate, texts in rows
        for text in texts
    ]


@pytest.mark.parametrize(("validate", "text"), table(GOOD))
def test_a_good_name_has_no_problems(validate: Validator, text: str) -> None:
    assert validate(text) == ()


@pytest.mark.parametrize(("validate", "text"), table(BAD))
def test_a_bad_name_is_refused_with_what_is_wanted(validate: Validator, text: str) -> None:
    problems = validate(text)
    assert problems
    assert all("want " in problem and "\n" not in problem for problem in problems)


@pytest.mark.parametrize(("validate", "texts"), GOOD, ids=lambda item: getattr(item, "__name__", ""))
def test_no_pattern_sees_a_hostile_name_and_the_message_is_short(validate: Validator, texts: list[str]) -> None:
    del texts
    problems = validate("a-" * 500_000 + "!")
    assert problems
    assert all("bytes, want at most" in problem or "has no domain" in problem for problem in problems)
    assert all(len(problem) < 300 for problem in problems)


def test_lengths_count_bytes() -> None:
    assert name.validate_length("é" * 32, 64) == ()
    assert name.validate_length("é" * 33, 64)
    assert name.byte_length("\ud800") == 3
