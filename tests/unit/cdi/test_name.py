import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdi import (
    InvalidNameError,
    Kind,
    QualifiedName,
    build_qualified_name,
    build_spec_name,
    parse_kind,
    parse_qualified_name,
    validate_class,
    validate_device_name,
    validate_qualified_name,
    validate_vendor,
)
from tests.support.cdi_spec import device_names, vendors


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a", id="one letter"),
        pytest.param("vendor.com", id="a domain"),
        pytest.param("K8s.GPU-x_y.com1", id="all kinds of characters"),
        pytest.param("a..b--c", id="marks in a row"),
    ],
)
def test_a_vendor_or_class_may_be(text: str) -> None:
    assert validate_vendor(text) == ()
    assert validate_class(text) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "vendor is empty", id="empty"),
        pytest.param("0a", "vendor '0a' starts with '0', want a letter", id="digit first"),
        pytest.param("a.", "vendor 'a.' ends with '.', want a letter or digit", id="mark last"),
        pytest.param("a:b", "vendor 'a:b' contains ':', want letters, digits, '_', '-', '.'", id="colon"),
        pytest.param("aéb", "vendor 'aéb' contains 'é', want letters, digits, '_', '-', '.'", id="not ASCII"),
        pytest.param("a٣", "vendor 'a٣' ends with '٣', want a letter or digit", id="digit that is not ASCII"),
        pytest.param("ab\n", "vendor 'ab\\n' ends with '\\n', want a letter or digit", id="line feed last"),
    ],
)
def test_a_vendor_may_not_be(text: str, problem: str) -> None:
    assert validate_vendor(text) == (problem,)


@pytest.mark.parametrize("text", ["0", "9a", "gpu:0", "GPU-1_2.3:4z", "a"])
def test_a_device_name_may_be(text: str) -> None:
    assert validate_device_name(text) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "device name is empty", id="empty"),
        pytest.param("_a", "device name '_a' starts with '_', want a letter or digit", id="mark first"),
        pytest.param("a:", "device name 'a:' ends with ':', want a letter or digit", id="colon last"),
        pytest.param("a/b", "device name 'a/b' contains '/', want letters, digits, '_', '-', '.', ':'", id="slash"),
        pytest.param("a=b", "device name 'a=b' contains '=', want letters, digits, '_', '-', '.', ':'", id="equals"),
    ],
)
def test_a_device_name_may_not_be(text: str, problem: str) -> None:
    assert validate_device_name(text) == (problem,)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        pytest.param("vendor.com/gpu", ("no '=', want vendor/class=device",), id="no device"),
        pytest.param("gpu=0", ("no '/', want vendor/class",), id="no class"),
        pytest.param("/gpu=0", ("vendor is empty",), id="no vendor"),
        pytest.param("v/=", ("class is empty", "device name is empty"), id="two parts empty"),
    ],
)
def test_a_malformed_qualified_name_gets_every_problem(text: str, problems: tuple[str, ...]) -> None:
    assert validate_qualified_name(text) == problems


def test_the_first_equals_sign_splits() -> None:
    assert validate_qualified_name("v/c=a=b") == (
        "device name 'a=b' contains '=', want letters, digits, '_', '-', '.', ':'",
    )


def test_the_error_names_the_text_and_all_problems() -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_qualified_name("0v/c-=x")
    assert str(caught.value) == (
        "qualified name '0v/c-=x': vendor '0v' starts with '0', want a letter; "
        "class 'c-' ends with '-', want a letter or digit"
    )
    assert len(caught.value.problems) == 2


@given(vendors, vendors, device_names)
def test_parsing_inverts_building(vendor: str, device_class: str, device: str) -> None:
    text = build_qualified_name(f"{vendor}/{device_class}", device)
    assert parse_qualified_name(text) == QualifiedName(Kind(vendor, device_class), device)
    assert str(parse_qualified_name(text)) == text


@given(st.text(alphabet="aZ0_-.:/=é \n"))
def test_any_text_is_parsed_or_refused_with_a_reason(text: str) -> None:
    problems = validate_qualified_name(text)
    if problems:
        with pytest.raises(InvalidNameError):
            parse_qualified_name(text)
    else:
        assert str(parse_qualified_name(text)) == text


def test_a_kind_has_a_vendor_and_a_class() -> None:
    assert parse_kind("vendor.com/gpu") == Kind("vendor.com", "gpu")
    with pytest.raises(InvalidNameError, match="kind 'a/b/c': class 'b/c' contains '/'"):
        parse_kind("a/b/c")


def test_a_spec_is_named_after_its_kind_and_what_it_lives_as_long_as() -> None:
    assert build_spec_name("vendor.com/gpu") == "vendor.com-gpu"
    assert build_spec_name("vendor.com/gpu", "uid/1") == "vendor.com-gpu_uid_1"
