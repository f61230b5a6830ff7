"""Mask a connector's secrets in its messages: the values themselves, and their forms in other texts."""

import base64
import html
import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

MASK: Final = "***"
_LONG: Final = 8
"""The length from which a secret is masked even inside words. A shorter one is masked only as a word: a name of four
letters is part of many others."""
_SHORTEST: Final = 3
_PLAIN: Final = frozenset({"true", "false", "null", "none", "yes", "no", "default"})
"""Values that reveal nothing. Masking them would make messages unreadable."""
_CUT: Final = 4
"""The least number of characters at the end of a cut text that are masked if a secret begins with them."""
_ESCAPED: Final = re.compile(r"%[0-9A-F]{2}")


class Mask:
    """A mask of secrets in texts: plain, escaped as in JSON, in a URL, in XML or by Python, and in base64.

    A secret of several lines is masked line by line, too. A secret that a text splits is not masked.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        values = {value for secret in secrets for value in _list_values(secret)}
        self._long = {form for value in values if len(value) >= _LONG for form in _list_forms(value)}
        short = {form for value in values if len(value) < _LONG for form in (value, *_list_escaped(value))}
        encoded = {_encode(value) for value in values}
        words, wholes = _join(short | encoded), _join(self._long)
        alone = rf"(?<![A-Za-z0-9_])(?:{words})(?![A-Za-z0-9_])" if words else ""
        pattern = "|".join(filter(None, (wholes, alone)))
        self._pattern = re.compile(pattern) if pattern else None

    def mask(self, text: str) -> str:
        """Return the text without the secrets."""
        return self._pattern.sub(MASK, text) if self._pattern is not None else text

    def mask_cut(self, text: str) -> str:
        """Return the text without the secrets, also of a text that was cut off inside a secret."""
        masked = self.mask(text)
        end = masked.rstrip("'\"")
        cut = max((_measure_beginning(end, form) for form in self._long), default=0)
        return f"{end[:-cut]}{MASK}{masked[len(end) :]}" if cut else masked


def _list_values(secret: str) -> Iterator[str]:
    for value in (secret, secret.strip()):
        if len(value) >= _SHORTEST and value.lower() not in _PLAIN:
            yield value
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= _LONG and line != secret)


def _list_forms(value: str) -> Iterator[str]:
    yield value
    yield from _list_escaped(value)
    yield _encode(value)
    data = value.encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for before in range(3):
            # The characters that depend on the value alone, wherever it begins in the encoded text.
            text = encode(bytes(before) + data).decode()
            yield text[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]


def _encode(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def _list_escaped(value: str) -> Iterator[str]:
    for is_ascii in (True, False):
        once = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield once
        # A message may have JSON text inside JSON text.
        yield json.dumps(once, ensure_ascii=is_ascii)[1:-1]
    yield repr(value)[1:-1]
    yield html.escape(value)
    for text in (quote(value, safe=""), quote(value), quote_plus(value)):
        yield text
        yield _ESCAPED.sub(lambda match: match[0].lower(), text)


def _join(forms: Iterable[str]) -> str:
    # The longest first: a form may begin with another one.
    return "|".join(re.escape(form) for form in sorted(filter(None, forms), key=lambda form: (-len(form), form)))


def _measure_beginning(text: str, form: str) -> int:
    lengths = range(min(len(form) - 1, len(text)), _CUT - 1, -1)
    return next((length for length in lengths if text.endswith(form[:length])), 0)
