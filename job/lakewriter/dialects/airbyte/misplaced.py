"""Advise on objects whose keys a configuration would not write: the line to change so that it would."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Final

from lakewriter.dialects.airbyte.file_formats import EXTENSIONS
from lakewriter.dialects.airbyte.paths import DEFAULT_FILE, make_layout, make_s3_safe
from lakewriter.dialects.airbyte.settings import AirbyteDestination
from lakewriter.spec.key_template import CLASH, UUID
from lakewriter.spec.layout import Layout

NO_SETTING: Final = "no setting gives a stream of the catalog such a key: it stays as it is"

_FILE_PATTERNS: Final = (DEFAULT_FILE, "{format_extension}")
"""Patterns to try beside the configuration's own; whatever is before them can be in ``s3_path_format``."""
_EXTENSION: Final = "(" + "|".join(map(re.escape, sorted(chain(*EXTENSIONS.values()), key=len, reverse=True))) + ")"
_DIGITS: Final = re.compile(rf"{UUID}|[0-9]+")
_WITHIN_A_DAY: Final = ("MONTH", "DAY", "HOUR", "MINUTE", "SECOND")

Name = tuple[str, str]
"""A stream's namespace and name."""


def find_extension(key: str) -> str:
    """Return the extension of a file that the vendor's connector or this one wrote; blank for another file."""
    match = re.search(f"{_EXTENSION}{CLASH}$", key)
    return match[1] if match else ""


class Adviser:
    """Advises on keys: which line of a configuration would make them a stream's.

    ``describe_key`` says in which line of which file a key is, ``streams`` are those of the catalog.
    """

    def __init__(self, form: AirbyteDestination, describe_key: Callable[..., str], streams: Sequence[Name]) -> None:
        self._form, self._describe_key, self._streams = form, describe_key, streams

    def advise_format(self, extension: str) -> str:
        """Return the line by which files of this extension would be written."""
        kind = next(name for name, extensions in EXTENSIONS.items() if extension in extensions)
        if kind != self._form.format.format_type:
            return f"{self._describe_key('format', 'format_type')} {kind!r} writes {extension}"
        compression = "GZIP" if extension.endswith(".gz") else "No Compression"
        where = self._describe_key("format", "compression", "compression_type")
        return f"{where} {compression!r} writes {extension}"

    def advise_key(self, key: str) -> str:
        """Say what to change so that a key like this one is a stream's; ``NO_SETTING`` where nothing would."""
        extension = find_extension(key)
        if not extension:
            return NO_SETTING
        return self._find_absent_stream(key) or self._find_path(key, extension) or NO_SETTING

    def _find_absent_stream(self, key: str) -> str:
        """Return advice if the key is that of a stream that the catalog does not name; blank otherwise."""
        parts = list(dict.fromkeys(part for part in key.split("/")[:-1] if part))
        namespaces = list(dict.fromkeys([*(namespace for namespace, _ in self._streams), *parts, ""]))
        for namespace, name in product(namespaces, parts):
            if self._fits(key, (namespace, name), self._form.s3_path_format, self._form.file_name_pattern):
                of = f" in namespace {namespace!r}" if namespace else " without a namespace"
                return f"the catalog has no stream {name!r}{of}: name it there if it is this connection's"
        return ""

    def _find_path(self, key: str, extension: str) -> str:
        """Return the path format, and the file name pattern if that differs too, that give such a key."""
        start = f"{self._form.s3_bucket_path.strip('/')}/".lstrip("/")
        file_pattern = self._form.file_name_pattern
        if "${" in start or not key.startswith(start):
            return ""
        for name, pattern in product(self._list_named(key), dict.fromkeys([file_pattern, *_FILE_PATTERNS])):
            tail = Layout("", make_layout("", "", pattern, name, extension).template).matcher().pattern
            match = re.search(f"(?:{tail})$", key)
            if match is None or match.start() < len(start):
                continue
            path = _spell_directory(key[len(start) : match.start()], name)
            if self._fits(key, name, path, pattern):
                lines = [f"{self._describe_key('s3_path_format')} {path!r}"]
                if pattern != file_pattern:
                    lines.append(f"{self._describe_key('file_name_pattern')} {pattern!r}")
                return f"{' and '.join(lines)} would make it one of stream {name[1]!r}"
        return ""

    def _list_named(self, key: str) -> Iterable[Name]:
        """Return the streams whose names are in the key, the longest first: a name may be a part of another one."""
        named = [name for name in self._streams if _find_name(make_s3_safe(name[1])).search(key)]
        return sorted(named, key=lambda name: (len(name[1]), len(name[0])), reverse=True)

    def _fits(self, key: str, name: Name, path: str, pattern: str) -> bool:
        extension = find_extension(key)
        layout = make_layout(self._form.s3_bucket_path, path, pattern, name, extension)
        return layout.matcher().fullmatch(key) is not None


def _find_name(name: str) -> re.Pattern[str]:
    """Matches a name that is not a part of a longer word."""
    return re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])") if name else re.compile("(?!)")


def _spell_directory(text: str, name: Name) -> str:
    """Return the path format that gives ``text`` for a stream: names, times and ids as variables."""
    namespace, stream = map(make_s3_safe, name)
    head, separator, rest = text.rpartition(stream)
    rest = "".join(_spell_digits(rest))
    head = _find_name(namespace).sub("${NAMESPACE}", head, count=1)
    return f"{head}${{STREAM_NAME}}{rest}" if separator else "".join(_spell_digits(head))


def _spell_digits(text: str) -> Iterator[str]:
    """Yield the text with variables for its groups of digits: a year, then what is smaller, in order."""
    end, expected = 0, list(_WITHIN_A_DAY)
    has_year = False
    for match in _DIGITS.finditer(text):
        digits = match[0]
        yield text[end : match.start()]
        end = match.end()
        if len(digits) == 36:
            yield "${UUID}"
        elif len(digits) == 13:
            yield "${EPOCH}"
        elif len(digits) == 8 and not has_year:
            has_year, expected = True, expected[2:]
            yield "${YEAR}${MONTH}${DAY}"
        elif len(digits) == 4 and not has_year:
            has_year = True
            yield "${YEAR}"
        elif len(digits) == 4 and not expected:
            yield "${MILLISECOND}"
        elif len(digits) == 2 and has_year and expected:
            yield f"${{{expected.pop(0)}}}"
        else:
            yield digits
    yield text[end:]
