import json
from http import HTTPStatus
from typing import Any

import pytest

from dra_driver import errors
from dra_driver.kube.status import build_error, parse_status


def an_error(code: int, body: bytes | dict[str, Any] = b"", retry_after: str = "") -> errors.ApiError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return build_error("update nodes node-a", code, parse_status(data), retry_after=retry_after)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (400, errors.ApiInvalidError),
        (401, errors.ApiForbiddenError),
        (403, errors.ApiForbiddenError),
        (404, errors.ApiNotFoundError),
        (408, errors.ApiUnavailableError),
        (409, errors.ApiConflictError),
        (410, errors.ApiGoneError),
        (422, errors.ApiInvalidError),
        (429, errors.ApiUnavailableError),
        (500, errors.ApiUnavailableError),
        (503, errors.ApiUnavailableError),
        (599, errors.ApiUnavailableError),
        (301, errors.ApiError),
        (405, errors.ApiError),
        (415, errors.ApiError),
    ],
)
def test_a_status_becomes_the_error_that_the_tree_promises(code: int, expected: type[errors.ApiError]) -> None:
    error = an_error(code)
    assert type(error) is expected
    assert error.status == code
    assert error.reason


def test_every_error_of_the_tree_comes_from_some_status() -> None:
    reached = {type(an_error(status.value)) for status in HTTPStatus if status.value >= 300}
    assert reached == {errors.ApiError, *errors.ApiError.__subclasses__()} - _private()


def _private() -> set[type[errors.ApiError]]:
    return {kind for kind in errors.ApiError.__subclasses__() if kind.__module__ != errors.__name__}


def test_the_message_and_every_cause_stand_in_one_line() -> None:
    causes = [
        {"field": "spec.driver", "message": "Required value"},
        {"field": "spec.pool.name", "message": "Invalid value: 'A'"},
    ]
    body = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Invalid",
        "message": "ResourceSlice is\ninvalid.",
        "details": {"causes": causes},
    }
    assert str(an_error(422, body)) == (
        "update nodes node-a: 422 Invalid: ResourceSlice is invalid.; spec.driver: Required value; "
        "spec.pool.name: Invalid value: 'A'"
    )


def test_a_cause_that_the_message_tells_already_is_not_repeated() -> None:
    body = {
        "message": "x is invalid: spec.driver: Required value",
        "details": {"causes": [{"field": "spec.driver", "message": "Required value"}]},
    }
    assert str(an_error(422, body)).count("Required value") == 1


@pytest.mark.parametrize("body", [b"", b"<html>\nBad Gateway</html>", b"[1]", b"\xff\xfe", b'{"status": 5}'])
def test_a_body_that_is_no_status_is_text(body: bytes) -> None:
    text = str(an_error(502, body))
    assert text.startswith("update nodes node-a: 502 BadGateway")
    assert "\n" not in text


def test_a_page_of_html_is_cut() -> None:
    assert len(str(an_error(502, b"x" * 100_000))) < 2100


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("7", {}, 7.0),
        ("", {"status": "Failure", "details": {"retryAfterSeconds": 3}}, 3.0),
        ("", {}, None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", {}, None),
    ],
)
def test_the_time_that_the_server_asks_to_wait_is_kept(
    header: str, body: dict[str, Any], expected: float | None
) -> None:
    error = an_error(429, body, header)
    assert isinstance(error, errors.ApiUnavailableError)
    assert error.retry_after_s == expected
