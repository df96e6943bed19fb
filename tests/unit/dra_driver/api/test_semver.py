import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_driver.api.semver import Semver, compare_semver, mend_semver, parse_semver, validate_semver

ASCENDING = [
    *("0.0.0-0", "0.0.0", "1.0.0-1", "1.0.0-2", "1.0.0-10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta"),
    *("1.0.0-beta", "1.0.0-rc.1", "1.0.0", "1.9.0", "1.10.0", "18446744073709551615.0.0"),
]


@pytest.mark.parametrize(
    "text", [*ASCENDING, "1.2.3+001", "1.2.3-rc.1+build.5", "1.2.3--", "1.2.3-0a", "1.2.3-" + "a" * 58]
)
def test_a_semantic_version_is_parsed_and_printed_as_it_was(text: str) -> None:
    assert validate_semver(text) == ()
    assert str(parse_semver(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "01.2.3",
            "1.02.3",
            "1.2.03",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3+",
            "1.2.3-a..b",
        ),
        *(
            "1.2.3 ",
            "1.2.3\n",
            "1.2.٣",
            "-1.2.3",
            "550.127.08",
            "18446744073709551616.0.0",
            "1.0.0-18446744073709551616",
        ),
        *("1.2.3-" + "a" * 59, "9" * 5000 + ".0.0"),
    ],
)
def test_other_text_is_refused(text: str) -> None:
    (problem,) = validate_semver(text)
    assert "want" in problem
    assert len(problem) < 300


def test_precedence_is_that_of_the_standard() -> None:
    versions = [parse_semver(text) for text in ASCENDING]
    for index, left in enumerate(versions):
        for other, right in enumerate(versions):
            assert compare_semver(left, right) == (index > other) - (index < other)


def test_build_metadata_has_no_precedence() -> None:
    assert compare_semver(Semver(1, 2, 3, build=("a",)), Semver(1, 2, 3, build=("b",))) == 0


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("550.127.08", "550.127.8"),
        ("6.19.14.31400000", "6.19.14"),
        ("25.0", "25.0.0"),
        ("25", "25.0.0"),
        ("v1.2.3", "1.2.3"),
        ("1.2.3-rc.1+build", "1.2.3-rc.1+build"),
        ("24.1.rc3", "24.1.0-rc3"),
        ("8.0.RC2", "8.0.0-RC2"),
        ("8.0.0.alpha002", "8.0.0-alpha002"),
        ("6.2.0-rc01", "6.2.0-rc01"),
        ("535.104.05-ubuntu1", "535.104.5"),
        ("1.2.3-rcx_1", "1.2.3"),
        ("  570.1 \n", "570.1.0"),
        ("0.0.00", "0.0.0"),
        ("R550", None),
        ("", None),
        ("unknown", None),
        ("9" * 80, None),
        ("2" * 20 + "." + "1" * 20, None),
        ("18446744073709551615." * 3, "18446744073709551615.18446744073709551615.18446744073709551615"),
        ("18446744073709551615." * 3 + "rc1", "18446744073709551615.18446744073709551615.18446744073709551615"),
    ],
)
def test_vendor_versions_are_mended(text: str, mended: str | None) -> None:
    assert mend_semver(text) == mended


@given(
    st.one_of(
        st.text(), st.from_regex(r"v?[0-9]{1,5}(\.[0-9]{1,9}){0,4}([-.+ ](rc|alpha|x)[0-9._-]*)?", fullmatch=True)
    )
)
def test_what_is_mended_is_a_semantic_version_and_stays(text: str) -> None:
    mended = mend_semver(text)
    if mended is not None:
        assert validate_semver(mended) == ()
        assert mend_semver(mended) == mended
