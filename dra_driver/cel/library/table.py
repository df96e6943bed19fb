"""All functions of an environment."""

from functools import cache

from dra_driver.cel.function import Function, Library
from dra_driver.cel.library.conversion import CONVERSIONS
from dra_driver.cel.library.kubernetes import KUBERNETES
from dra_driver.cel.library.layout import LAYOUT
from dra_driver.cel.library.moment import MOMENTS
from dra_driver.cel.library.naming import NAMING
from dra_driver.cel.library.network import NETWORK
from dra_driver.cel.library.option import OPTIONS
from dra_driver.cel.library.sequence import INCLUDES, LISTS_LIBRARY
from dra_driver.cel.library.standard import STANDARD
from dra_driver.cel.library.text import TEXTS
from dra_driver.cel.library.url import URLS


@cache
def functions(*, includes: bool) -> dict[str, Function]:
    """Give all functions by name; `includes` came with Kubernetes 1.37, or with its gate."""
    library = Library()
    parts = [STANDARD, CONVERSIONS, MOMENTS, OPTIONS, TEXTS, LISTS_LIBRARY, LAYOUT]
    parts += [KUBERNETES, NETWORK, URLS, NAMING]
    for part in parts + ([INCLUDES] if includes else []):
        library.merge(part)
    return library.functions
