"""Named formats: `format.dns1123Label().validate(text)`."""

import re
from collections.abc import Callable
from typing import Final

from dra_driver.cel.error import Fault
from dra_driver.cel.function import Library, Overload
from dra_driver.cel.library.uri import parse_request_uri
from dra_driver.cel.type import FORMAT, STRING, list_of, optional_of
from dra_driver.cel.value import NONE, Format, Optional, Value
from dra_driver.cel.value import optional_of as present

NAMING: Final = Library()
_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_LABEL_1035: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_MAX_LABEL: Final = 63
_MAX_SUBDOMAIN: Final = 253
_FEBRUARY: Final = 2
_DAYS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _pattern(
    pattern: re.Pattern[str], limit: int, name: str, *, prefix: bool = False
) -> Callable[[str], tuple[str, ...]]:
    def validate(text: str) -> tuple[str, ...]:
        body = text[:-2] + "a" if prefix and len(text) > 1 and text.endswith("-") else text
        problems = []
        if len(body.encode()) > limit:
            problems.append(f"must be no more than {limit} bytes")
        if not pattern.fullmatch(body):
            problems.append(f"is no {name}")
        return tuple(problems)

    return validate


def _label_value(text: str) -> tuple[str, ...]:
    return _pattern(_NAME, _MAX_LABEL, "label value")(text) if text else ()


def _qualified_name(text: str) -> tuple[str, ...]:
    parts = text.split("/")
    if len(parts) > 2:  # noqa: PLR2004 - a prefix and a name
        return ("is no qualified name",)
    problems: tuple[str, ...] = ()
    if len(parts) == 2:  # noqa: PLR2004 - a prefix and a name
        problems += _pattern(_SUBDOMAIN, _MAX_SUBDOMAIN, "prefix")(parts[0])
    return problems + _pattern(_NAME, _MAX_LABEL, "qualified name")(parts[-1])


def _uri(text: str) -> tuple[str, ...]:
    try:
        parse_request_uri(text)
    except Fault as error:
        return (str(error),)
    return ()


def _byte(text: str) -> tuple[str, ...]:
    return () if _BASE64.fullmatch(text) else ("invalid base64",)


def _is_day(year: str, month: str, day: str) -> bool:
    number = int(month)
    if not 1 <= number <= len(_DAYS) or not 1 <= int(day) <= _DAYS[number - 1]:
        return False
    leap = int(year) % 4 == 0 and (int(year) % 100 != 0 or int(year) % 400 == 0)
    return leap or number != _FEBRUARY or int(day) < _DAYS[1]


def _date(text: str) -> tuple[str, ...]:
    match = _DATE.fullmatch(text)
    return () if match and _is_day(match[1], match[2], match[3]) else ("invalid date",)


def _date_time(text: str) -> tuple[str, ...]:
    date, _, time = text.lower().partition("t")
    match = _TIME.fullmatch(time.partition("t")[0])
    if _date(date) or match is None:
        return ("invalid datetime",)
    return () if match[1] <= "23" and match[2] <= "59" and match[3] <= "59" else ("invalid datetime",)


def _uuid(text: str) -> tuple[str, ...]:
    return () if _UUID.fullmatch(text) else ("does not match the UUID format",)


FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", _pattern(_LABEL, _MAX_LABEL, "DNS label"), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _pattern(_SUBDOMAIN, _MAX_SUBDOMAIN, "DNS subdomain"), 60),
    "dns1035Label": Format("DNS1035Label", _pattern(_LABEL_1035, _MAX_LABEL, "DNS-1035 label"), 30),
    "qualifiedName": Format("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _pattern(_LABEL, _MAX_LABEL, "DNS label", prefix=True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", _pattern(_SUBDOMAIN, _MAX_SUBDOMAIN, "DNS subdomain", prefix=True), 60
    ),
    "dns1035LabelPrefix": Format(
        "DNS1035LabelPrefix", _pattern(_LABEL_1035, _MAX_LABEL, "DNS-1035 label", prefix=True), 30
    ),
    "labelValue": Format("LabelValue", _label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _uuid, 70),
    "byte": Format("byte", _byte, 84),
    "date": Format("date", _date, 71),
    "datetime": Format("datetime", _date_time, 71),
}


def _validate(format_: Format, text: str) -> Optional:
    problems = format_.validate(text)
    return present(problems) if problems else NONE


def _named(name: str) -> Optional:
    return present(FORMATS[name]) if name in FORMATS else NONE


def _constant(format_: Format) -> Callable[[], Value]:
    return lambda: format_


NAMING.add(
    "validate",
    Overload("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), member=True, run=_validate),
)
NAMING.add("format.named", Overload("format-named", (STRING,), optional_of(FORMAT), run=_named))
for _name, _format in FORMATS.items():
    NAMING.add(f"format.{_name}", Overload(f"format.{_name}", (), FORMAT, run=_constant(_format)))
