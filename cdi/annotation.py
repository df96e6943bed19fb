"""Annotations of specs and devices: notes that do not reach the container.

They follow the rules of Kubernetes annotations: a key is a name of up to 63 characters with an optional DNS subdomain
before it (`example.com/name`), where case does not matter, and all keys and values together have a size limit.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

MAX_ANNOTATION_BYTES: Final = 256 * 1024
_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_MAX: Final = 63
_SUBDOMAIN_MAX: Final = 253


def validate_annotations(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return every problem of a set of annotations, none if it is valid."""
    return tuple(_problems(annotations))


def _problems(annotations: Mapping[str, str]) -> Iterator[str]:
    for key in annotations:
        prefix, slash, name = key.lower().rpartition("/")
        if slash and (len(prefix) > _SUBDOMAIN_MAX or not _SUBDOMAIN.fullmatch(prefix)):
            yield f"key {key!r} has the prefix {prefix!r}, want a DNS subdomain of up to {_SUBDOMAIN_MAX} characters"
        if len(name) > _NAME_MAX or not _NAME.fullmatch(name):
            yield (
                f"key {key!r} has the name {name!r}, want up to {_NAME_MAX} letters, digits, '-', '_' and '.' "
                "that start and end with a letter or digit"
            )
    size = sum(len(text.encode(errors="surrogatepass")) for item in annotations.items() for text in item)
    if size > MAX_ANNOTATION_BYTES:
        yield f"{size} bytes of keys and values, want at most {MAX_ANNOTATION_BYTES}"
