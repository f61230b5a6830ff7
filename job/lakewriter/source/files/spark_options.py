"""Check reader options by Spark's names: accept those whose meaning is kept, and refuse others with an alternative."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.source_formats import OF_STREAMS, find_format

_SPARK: Final = "let Spark read the files: read: {engine: spark}"
_ON_BAD_ROW: Final = "on_bad_row says what becomes of bad rows: fail or quarantine"

OF_LISTING: Final = frozenset({"recursivefilelookup", "pathglobfilter"})
"""The options that select files."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        # Line breaks in quotes are always read, of rows and fields of any size.
        *("multiline", "maxcolumns", "maxcharspercolumn", "inputbuffersize", "columnpruning", "preferdate"),
        *("samplingratio", "compression", "codec", "extension", "escapequotes", "quoteall", "locale"),
        *("ignorenullfields", "pretty", "writenonasciicharacterascodepoint", "useunsaferow", "infertimestamp"),
        *OF_STREAMS,
        # Columns of all files are always read, each type as its file says.
        *("mergeschema", "datetimerebasemode", "int96rebasemode"),
    }
)
"""Options that do not change the rows: the first are limits and hints, the others are a writer's."""

_ONLY: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    # option: the values with which it changes nothing, what to use instead of others
    "mode": (frozenset({"failfast"}), _ON_BAD_ROW),
    "columnnameofcorruptrecord": (frozenset(), _ON_BAD_ROW),
    "badrecordspath": (frozenset(), _ON_BAD_ROW),
    "path": (frozenset(), "name the files in read.path"),
    "basepath": (frozenset(), _SPARK),
    "modifiedbefore": (frozenset(), _SPARK),
    "modifiedafter": (frozenset(), _SPARK),
    "ignorecorruptfiles": (frozenset({"false"}), "remove the files that cannot be read"),
    "ignoremissingfiles": (frozenset({"false"}), "name files that are there"),
    "nanvalue": (frozenset({"nan"}), "write NaN, or read the column as text"),
    "positiveinf": (frozenset({"infinity"}), "write Infinity, or read the column as text"),
    "negativeinf": (frozenset({"-infinity"}), "write -Infinity, or read the column as text"),
    "unescapedquotehandling": (frozenset({"stop_at_delimiter"}), _ON_BAD_ROW),
    "singlevariantcolumn": (frozenset(), _SPARK),
    "enabledatetimeparsingfallback": (frozenset({"false"}), "give dateFormat or timestampFormat"),
    "ignoreextension": (frozenset({"true"}), "name the files in read.path, or by pathGlobFilter"),
    "positionalfieldmatching": (frozenset({"false"}), _SPARK),
    "allowcomments": (frozenset({"false"}), _SPARK),
    "allowunquotedfieldnames": (frozenset({"false"}), _SPARK),
    "allowsinglequotes": (frozenset({"false"}), _SPARK),
    "allownumericleadingzeros": (frozenset({"false"}), _SPARK),
    "allowbackslashescapinganycharacter": (frozenset({"false"}), _SPARK),
    "allowunquotedcontrolchars": (frozenset({"false"}), _SPARK),
    "allownonnumericnumbers": (frozenset({"false"}), _SPARK),
}


@dataclass(frozen=True)
class Options:
    """The options of one source by their names in lower case; ``table`` is for messages.

    ``truncates_nanoseconds`` is what the table says of them. ``nameless`` are the names of columns without one in
    earlier loads.
    """

    given: Mapping[str, str]
    table: str
    truncates_nanoseconds: bool = False
    nameless: tuple[str, ...] = ()

    def get(self, *names: str) -> str | None:
        """Return the first of the options that is given."""
        return next((self.given[name.lower()] for name in names if name.lower() in self.given), None)

    def is_true(self, name: str) -> bool:
        """Return True if an option is true. Raise ``SPEC_INVALID`` if it is neither true nor false."""
        value = self.given.get(name.lower(), "false").strip().lower()
        if value not in ("true", "false"):
            raise self.refuse(name, "expected true or false", "Write one of them, without quotes.")
        return value == "true"

    def get_character(self, name: str, default: str) -> str:
        """Return an option of one character of ASCII, blank for none."""
        value = self.given.get(name.lower(), default)
        if value in ("", "\0", "\\0", "\\u0000"):
            return ""
        value = unescape(value)
        if len(value) != 1 or not value.isascii() or value in "\r\n":
            raise self.refuse(name, "expected one ASCII character, or nothing")
        return value

    def read_line_sep(self) -> str | None:
        """Return the given line end. Raise ``SPEC_INVALID`` if it is not one that readers recognise."""
        line_sep = self.get("lineSep")
        if line_sep not in (None, "\n", "\r\n", "\r"):
            raise self.refuse("lineSep", "expected \\n, \\r\\n or \\r", "Leave it out: the reader recognises them.")
        return line_sep

    def refuse(self, name: str, expected: str, remedy: str = "") -> SpecInvalidError:
        """Make the error for an option."""
        return SpecInvalidError(
            f"table {self.table!r}: options: {name} is {self.given.get(name.lower())!r}, {expected}.", remedy=remedy
        )


def take_options(form: str, options: Mapping[str, str], table: str) -> Options:
    """Return the options of a format. Raise ``SPEC_INVALID`` for an option that the reader would not follow."""
    taken_by_reader = find_format(form).taken or ()
    taken = Options({name.lower(): str(value) for name, value in options.items()}, table)
    for name in options:
        lower = name.lower()
        if "." in name or lower in OF_LISTING or lower in taken_by_reader or lower in _WITHOUT_EFFECT:
            continue
        harmless, instead = _ONLY.get(lower, (frozenset[str](), _SPARK))
        if taken.given[lower].strip().lower() not in harmless:
            raise taken.refuse(name, "which the product's own reader does not take", f"Leave it out: {instead}.")
    return taken


def unescape(text: str) -> str:
    r"""Return a separator without escapes: ``\t`` is a tab, ``\\`` a backslash."""
    return re.sub(r"\\([t\\])", lambda match: "\t" if match[1] == "t" else "\\", text)
