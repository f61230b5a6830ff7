"""What every dialect asks of text that says where data goes: URLs with TLS and without passwords, plain keys."""

import re
import unicodedata
from typing import Final
from urllib.parse import urlsplit

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.source_files import Location
from lakewriter.errors import TlsRequiredError

_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


def require_url(value: str, example: str) -> str:
    """``value``; ``ValueError`` for what is no HTTP URL, or holds a name and a password."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"expected a URL such as {example!r}")
    # Anywhere: a password may have a slash, behind which the rest of it would count as the URL's path.
    if "@" in value:
        raise ValueError(f"a URL with a name or a password in it would be printed; expected one such as {example!r}")
    return value


def require_tls(url: str, location: Location, *, allow_insecure: bool) -> None:
    """``TLS_REQUIRED`` for a URL without TLS, except on this machine or where the file allows it."""
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_insecure:
        raise FaultError(
            location,
            f"{url!r} has no TLS and is not on this machine.",
            remedy="Use https://, or set allow_insecure: true.",
            kind=TlsRequiredError,
        )


def require_match(pattern: re.Pattern[str], value: str, expected: str) -> str:
    """``value``; ``ValueError`` with what is ``expected`` where the pattern does not match all of it."""
    if not pattern.fullmatch(value):
        raise ValueError(f"expected {expected}")
    return value


def require_path(value: str, example: str) -> str:
    """``value``; ``ValueError`` for what is no path inside a bucket."""
    if "://" in value:
        raise ValueError(f"expected a path inside the bucket, such as {example!r}")
    return require_plain(value, example)


def require_plain(value: str, example: str) -> str:
    """``value``, a part of keys; ``ValueError`` for a character that no key should have."""
    # S3 takes them, and then neither its XML listings nor engines give the key back as it is.
    odd = next((character for character in value if unicodedata.category(character) in {"Cc", "Cs"}), None)
    if odd is not None:
        raise ValueError(f"has the control character U+{ord(odd):04X}; expected text such as {example!r}")
    return value
