import errno
import socket

import pytest

from dra_driver.errors import FieldError, InvalidError, explain_os_error


def test_invalid_input_tells_every_field_error() -> None:
    error = InvalidError("profile", [FieldError("devices[0].count", "got 0, want at least 1"), FieldError("", "odd")])
    assert str(error) == "profile: devices[0].count: got 0, want at least 1; odd"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(OSError(errno.ENOSPC, "No space left on device"), "no space left on device", id="system"),
        pytest.param(
            OSError(errno.EADDRINUSE, "error while attempting to bind"), "address already in use", id="library above"
        ),
        pytest.param(socket.gaierror(-2, "Name or service not known"), "name or service not known", id="resolver"),
        pytest.param(OSError("Odd"), "odd", id="no number"),
    ],
)
def test_the_system_is_quoted_in_lower_case(error: OSError, text: str) -> None:
    assert explain_os_error(error) == text
