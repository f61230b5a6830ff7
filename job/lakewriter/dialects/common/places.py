"""Check text that says where data goes: URLs with TLS and without passwords, plain keys."""

import re
from urllib.parse import urlsplit

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.source_files import Location
from lakewriter.errors import TlsRequiredError
from lakewriter.naming import describe_unfit_segment
from lakewriter.spec.access import LOOPBACK
from lakewriter.spec.table_spec import TableSpec


def require_url(value: str, example: str) -> str:
    """Return ``value``; raise ``ValueError`` if it is not an HTTP URL, or holds a name and a password."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"expected a URL such as {example!r}")
    # Anywhere: a password may have a slash, behind which its rest would count as the URL's path.
    if "@" in value:
        raise ValueError(f"a URL with a name or a password in it would be printed; expected one such as {example!r}")
    return value


def require_tls(url: str, location: Location, *, allow_insecure: bool) -> None:
    """Raise ``TLS_REQUIRED`` for a URL without TLS, except on this machine or where the file allows it."""
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not allow_insecure:
        raise FaultError(
            location,
            f"{url!r} has no TLS and is not on this machine.",
            remedy="Use https://, or set allow_insecure: true.",
            kind=TlsRequiredError,
        )


def require_match(pattern: re.Pattern[str], value: str, expected: str) -> str:
    """Return ``value``; raise ``ValueError`` with what is ``expected`` if the pattern does not match the whole
    value."""
    if not pattern.fullmatch(value):
        raise ValueError(f"expected {expected}")
    return value


def require_path(value: str, example: str, *, behind: str = "") -> str:
    """Return ``value``, which has the text ``behind`` it in its last segment; ``ValueError`` for what is no path inside
    a bucket."""
    if "://" in value:
        raise ValueError(f"expected a path inside the bucket, such as {example!r}")
    return require_plain(value, example, behind=behind)


def require_plain(value: str, example: str, *, before: str = "", behind: str = "") -> str:
    """Return ``value``, a part of keys that has the text ``before`` and ``behind`` it in its first and last segment.

    Raise ``ValueError`` for a segment that no key may have.
    """
    fault = describe_unfit_segment(before + value + behind)
    if fault is not None:
        raise ValueError(f"{fault}; expected text such as {example!r}")
    return value


def require_fit_keys(table: TableSpec, location: Location) -> None:
    """Raise ``SPEC_INVALID`` at ``location`` if the keys of a table, or of its bad rows, have a segment that no key may
    have."""
    for key in (table.layout.example, table.quarantine):
        fault = describe_unfit_segment(key or "")
        if fault is not None:
            raise FaultError(
                location,
                f"table {table.source_table!r} would lie at {key!r}: the key {fault}.",
                remedy="Give it another name, or another schema or namespace.",
            )
