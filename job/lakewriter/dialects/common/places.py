"""What every dialect asks of text that says where data goes: URLs without passwords, keys without odd characters."""

import unicodedata
from urllib.parse import urlsplit


def require_url(value: str, example: str) -> str:
    """``value``; ``ValueError`` for what is no HTTP URL, or holds a name and a password."""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"expected a URL such as {example!r}")
    if "@" in parts.netloc:
        raise ValueError(f"a URL with a name or a password in it would be printed; expected one such as {example!r}")
    return value


def require_path(value: str, example: str) -> str:
    """``value``; ``ValueError`` for what is no path inside a bucket."""
    if "://" in value:
        raise ValueError(f"expected a path inside the bucket, such as {example!r}")
    # S3 takes them, and then neither its XML listings nor engines give the key back as it is.
    odd = next((character for character in value if unicodedata.category(character) in {"Cc", "Cs"}), None)
    if odd is not None:
        raise ValueError(f"has the control character U+{ord(odd):04X}; expected a path such as {example!r}")
    return value
