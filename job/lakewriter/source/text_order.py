"""Tell whether texts sort as the numbers, dates and versions that they spell, and name the type that does.

Texts are compared letter by letter. ``01.02.2026`` is below ``31.01.2026``: no load reads its row where a cursor is
such a text, and a merge keeps the older row where it orders rows by it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from lakewriter.cast.exact_text import TextForm
from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.strict_cast import cast_text
from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor, TextShapes
from lakewriter.source.text_types import propose_type, write_columns_line
from lakewriter.spec.table_spec import ColumnType, TableSpec

_DAYS: Final = (
    "dd.MM.yyyy", "d.M.yyyy", "dd/MM/yyyy", "MM/dd/yyyy", "d/M/yyyy", "M/d/yyyy", "dd-MM-yyyy", "MM-dd-yyyy",
    "d-M-yyyy", "M-d-yyyy", "yyyy/MM/dd", "yyyy.MM.dd", "yyyy-M-d", "yyyy/M/d", "d MMM yyyy", "dd-MMM-yyyy",
    "d MMMM yyyy", "MMM d, yyyy", "MMMM d, yyyy",
)  # fmt: skip
"""Where two fit the same values, the first of each order of day and month is enough."""
_TIMES: Final = (" HH:mm", " HH:mm:ss", "'T'HH:mm:ss", " h:mm a", " h:mm:ss a", " H:mm", " H:mm:ss", ", HH:mm",
                 ", HH:mm:ss")  # fmt: skip
_MORE_TIMES: Final = ("yyyy-MM-dd h:mm a", "yyyy-MM-dd h:mm:ss a", "yyyy-MM-dd H:mm", "yyyy-MM-dd H:mm:ss",
                      "EEE, d MMM yyyy HH:mm:ss Z", "EEE, d MMM yyyy HH:mm:ss VV")  # fmt: skip

_STAND_IN: Final = re.compile(r"[^0-9]*")
"""Texts such as ``n/a``: what stands for no value spells none."""
_CLOCK: Final = (
    r"[0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2}(?:[.,][0-9]+)?)?)?(?: ?(?:Z|[A-Z]{3,4}|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_SORTED_TIME: Final = re.compile(
    rf"[0-9]{{4}}([-/.]?)(?:0[1-9]|1[0-2])(?:\1(?:0[1-9]|[12][0-9]|3[01])(?:[ T]{_CLOCK})?)?"
)
_MONTH: Final = r"[^\W\d_]{3,9}\.?"
_OTHER_TIME: Final = re.compile(
    r"[0-9]{1,2}(?:\. ?|[/-])[0-9]{1,2}(?:\. ?|[/-])(?:[0-9]{4}|[0-9]{2})(?:[ T,].*)?"
    r"|[0-9]{4}([-/.])[0-9]{1,2}\1[0-9]{1,2}(?:[ T].*)?"
    rf"|(?:[^\W\d_]{{2,9}},? )?[0-9]{{1,2}}(?:\.|st|nd|rd|th)?[ -]{_MONTH},?[ -][0-9]{{2,4}}(?:[ ,].*)?"
    rf"|(?:[^\W\d_]{{2,9}},? )?{_MONTH} [0-9]{{1,2}}(?:st|nd|rd|th)?,? (?:[0-9:]+ )?(?:[A-Z]{{3,4}} )?[0-9]{{4}}"
    r"(?:[ ,].*)?"
)
_NUMBER: Final = re.compile(
    r"[+-]?(?:[0-9]+|[0-9]{1,3}(?:[,.' _\u00a0\u202f][0-9]{3})+)?(?:[.,][0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII
)
_VERSION: Final = re.compile(r"[vV]?[0-9]+(?:\.[0-9]+)+(?:[-+._ ]?[A-Za-z][\w.+-]*)?", re.ASCII)
_NUMBERED: Final = re.compile(r"([^0-9]*)([0-9]+)([^0-9]*)")
_DIGITS: Final = re.compile(r"([0-9]+)(?:[.,][0-9]+)?")
_COUNTED: Final = re.compile(
    r"(?:19|20)[0-9]{2}(?:(?:0[1-9]|1[0-2])(?:(?:0[1-9]|[12][0-9]|3[01])(?:[01][0-9]|2[0-3])?(?:[0-5][0-9]){0,2}"
    r"(?:[0-9]{3})?)?)?|[1-3][0-9]{9}(?:[0-9]{3}){0,3}"
)
"""Digits of one width for centuries: years to milliseconds, and what counts the time since 1970."""


@dataclass(frozen=True)
class Disorder:
    """The reason why texts do not sort as what they spell, and the types that would."""

    reason: str
    types: tuple[str | ColumnType, ...] = ()


def require_sorted_texts(table: TableSpec, cursor: Cursor, before: Cursor | None = None) -> None:
    """Raise ``SPEC_INVALID`` if the cursor is a text that sorts otherwise than what it spells.

    Args:
        table: The table, whose cursor it is.
        cursor: The highest text, with the shapes of those that were compared.
        before: The cursor from which they were read: rows below it were not.
    """
    if cursor.type != "string":
        return
    texts = {text for ends in (cursor.shapes or TextShapes()).ends.values() for text in ends}
    texts |= {text.text for text in (cursor, before) if text is not None and text.type == "string"}
    is_many = cursor.shapes is not None and cursor.shapes.is_many
    disorder = None if is_many else find_disorder(texts)
    if disorder is None:
        return
    name = str(table.cursor)
    raise SpecInvalidError(
        f"table {table.id!r}: cursor {name!r} is text, which is compared letter by letter: {disorder.reason}. Later "
        "loads would leave out rows.",
        remedy=_write_remedy(table, name, disorder, is_loaded=before is not None),
    )


def require_sorted_orders(
    table: TableSpec, orders: Mapping[str, TextShapes], *, is_loaded: bool, is_made: bool = False
) -> None:
    """Raise ``SPEC_INVALID`` if rows are merged by a text that sorts otherwise than what it spells.

    Args:
        table: The table, whose ``order_by`` names the columns.
        orders: The shapes of the texts of each such column, by its name in the source.
        is_loaded: Whether the table has rows already, and the column as text.
        is_made: Whether the load has made the table.
    """
    for name, shapes in orders.items():
        texts = {text for ends in shapes.ends.values() for text in ends}
        disorder = None if shapes.is_many else find_disorder(texts)
        if disorder is None:
            continue
        lines = [write_columns_line(table.columns, {name: kind}) for kind in disorder.types]
        remedy = "Order rows by a number, a date or a time; an sql: read can make one of the text."
        if lines and is_loaded:
            remedy = (
                f"A table that has the column as text keeps it so: let an sql: read add a column of the type that "
                f"{' or '.join(lines)} would give it, and name it in order_by; or load into a new table with that line."
            )
        elif lines:
            drop = "Drop the table in its catalog, which has no rows. " if is_made else ""
            remedy = f"{drop}Declare its type: {' or '.join(lines)}."
        raise SpecInvalidError(
            f"table {table.id!r}: order_by {name!r} is text, which is compared letter by letter: {disorder.reason}. "
            "The older row of a key would stay.",
            remedy=remedy,
        )


def _write_remedy(table: TableSpec, name: str, disorder: Disorder, *, is_loaded: bool) -> str:
    lines = [write_columns_line(table.columns, {name: kind}) for kind in disorder.types]
    if not lines:
        return "Name a cursor that is a number, a date or a time; an sql: read can make one of the text."
    remedy = f"Declare its type: {' or '.join(lines)}."
    if is_loaded:
        remedy += (
            " A table that has the column as text keeps it so: let an sql: read add a column of that type, and name it "
            f"as the cursor. Then lakewriter reset LAKE {table.id} --cursor VALUE --type TYPE --reason WHY."
        )
    return remedy


def find_disorder(texts: set[str]) -> Disorder | None:
    """Return why texts do not sort as what they spell; None for texts that do, and for those that spell nothing.

    ``texts`` has the lowest and the highest text of each shape.
    """
    spelled = sorted(text for text in texts if not _STAND_IN.fullmatch(text))
    if not spelled:
        return None
    if _are(_NUMBER, spelled):
        return _judge_numbers(spelled) or _judge_words(spelled, texts)
    if _are(_VERSION, spelled) and not _are(_SORTED_TIME, spelled) and not _are(_OTHER_TIME, spelled):
        return Disorder(f"{_show(spelled)}, and version '1.10' sorts below '1.9'")
    return _judge_times(spelled, texts) or _judge_numbered(spelled)


def _are(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return all(map(pattern.fullmatch, texts))


def _judge_words(sorted_texts: Sequence[str], texts: set[str]) -> Disorder | None:
    """Return the reason if a text that spells nothing sorts above those that do: the cursor would stay there."""
    above = max(texts)
    if above <= sorted_texts[-1]:
        return None
    return Disorder(
        f"it has {above!r}, which sorts above {sorted_texts[-1]!r} and whatever follows that", _list_types(sorted_texts)
    )


def _judge_times(spelled: Sequence[str], texts: set[str]) -> Disorder | None:
    times = [text for text in spelled if _SORTED_TIME.fullmatch(text)]
    odd = [text for text in spelled if text not in times and _OTHER_TIME.fullmatch(text)]
    if odd:
        reason = f"{_show(odd)}, and dates so written do not sort as they follow each other"
        return Disorder(reason, _list_types([*times, *odd]))
    if not times:
        return None
    skeletons = {_make_skeleton(text): text for text in times}
    for (shape, text), (longer, other) in pairwise(sorted(skeletons.items(), key=lambda item: len(item[0]))):
        if not longer.startswith(shape):
            reason = f"it spells times in several ways, as {text!r} and {other!r}, which do not sort together"
            return Disorder(reason, _list_types(times))
    return _judge_words(times, texts)


def _make_skeleton(text: str) -> str:
    """Return a time with ``9`` for each digit but those of its offset."""
    offset = re.search(r"(?<=[0-9]) ?[+-][0-9]{2}(?::?[0-9]{2})?$", text) if ":" in text or "T" in text else None
    end = len(text) if offset is None else offset.start()
    return re.sub("[0-9]", "9", text[:end]) + text[end:]


def _judge_numbers(spelled: Sequence[str]) -> Disorder | None:
    widths = {len(match[1]) if (match := _DIGITS.fullmatch(text)) else 0 for text in spelled}
    if len(widths) == 1 and widths != {0}:
        is_padded = widths != {1} and any(text.startswith("0") for text in spelled)
        if is_padded or _are(_COUNTED, spelled):
            return None
    return Disorder(f"{_show(spelled)}, and '10' sorts below '9'", _list_types(spelled))


def _judge_numbered(spelled: Sequence[str]) -> Disorder | None:
    matches = [match for text in spelled if (match := _NUMBERED.fullmatch(text))]
    if len(matches) < len(spelled) or len({(match[1], match[3]) for match in matches}) > 1:
        return None
    by_number = sorted(matches, key=lambda match: int(match[2]))
    pairs = [(low[0], high[0]) for low, high in pairwise(by_number) if low[0] > high[0]]
    return Disorder(f"it has {pairs[0][0]!r} and {pairs[0][1]!r}, which sorts below the first") if pairs else None


def _list_types(texts: Sequence[str]) -> tuple[str | ColumnType, ...]:
    """List the types to which every text converts: one, or two where day and month cannot be told apart."""
    proposed = propose_type(pa.array(texts, pa.string())).type
    if proposed is not None and proposed != "boolean":
        # A decimal of the ends' digits may be too small for what lies between them.
        return ("double" if proposed.startswith("decimal") else proposed,)
    patterns = tuple(ColumnType(type=kind, format=pattern) for kind, pattern in list_time_patterns(texts))
    plain = next((kind for kind in ("timestamp", "bigint", "double") if _fits(texts, kind, None)), None)
    return patterns or (() if plain is None else (plain,))


def list_time_patterns(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """List the types and patterns that fit every text, one for each order of day and month."""
    fitting = set[bool]()
    candidates = [("date", day) for day in _DAYS] + [("timestamp", day + time) for day in _DAYS for time in _TIMES]
    for kind, pattern in (*candidates, *(("timestamp", pattern) for pattern in _MORE_TIMES)):
        begins_with_month = pattern.startswith("M")
        if begins_with_month not in fitting and _fits(texts, kind, pattern):
            fitting.add(begins_with_month)
            yield kind, pattern


def _fits(texts: Sequence[str], kind: str, pattern: str | None) -> bool:
    how = TextForm(date_format=pattern) if kind == "date" else TextForm(timestamp_format=pattern)
    # One value excludes most patterns that do not fit.
    return all(
        cast_text(pa.array(part, pa.string()), parse_type(kind), how).misfits is None for part in (texts[:1], texts)
    )


def _show(texts: Sequence[str]) -> str:
    return f"it has {' and '.join(repr(text) for text in dict.fromkeys((texts[0], texts[-1])))}"
