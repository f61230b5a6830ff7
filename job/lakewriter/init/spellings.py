"""Find the lines that type columns of text in another country's spelling: dates, numbers, yes and no."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.init.proposals import Column
from lakewriter.source.text_order import list_time_patterns

_MARKS: Final = ((",", "."), (",", " "), (",", "'"), (".", ","), (".", "'"), (".", " "))
"""The mark of decimals, and of thousands."""
_ANSWERS: Final = (
    ("ja", "nein"), ("ja", "nee"), ("ja", "nej"), ("ja", "nei"), ("oui", "non"), ("vrai", "faux"), ("wahr", "falsch"),
    ("sí", "no"), ("si", "no"), ("sì", "no"), ("sim", "não"), ("sim", "nao"), ("tak", "nie"), ("ano", "ne"),
    ("да", "нет"), ("evet", "hay\u0131r"), ("on", "off"),
)  # fmt: skip
_LEAST_PRECISION: Final = 18
_MOST_PRECISION: Final = 38


@dataclass(frozen=True)
class Spelling:
    """A column of text whose values all have one type, in a spelling that has to be named.

    ``entry`` is the column's under ``columns:``; where there is none, ``expression`` is what SQL makes of the column.
    """

    column: str
    reason: str
    entry: Mapping[str, str] | None = None
    expression: str = ""


def find_spellings(rows: pa.Table, columns: Sequence[Column]) -> tuple[Spelling, ...]:
    """Find the spellings of the columns that no type fits as they are: one each, or two where the order is unclear."""
    texts = [column.name for column in columns if column.type == "string" and column.declared is None]
    return tuple(spelling for name in texts for spelling in _find_spellings(name, rows[name]))


def _find_spellings(name: str, values: pa.ChunkedArray) -> Sequence[Spelling]:
    distinct = [text for text in values.unique().to_pylist() if text is not None]
    if not distinct:
        return ()
    return (
        list(_list_times(name, distinct)) or list(_list_numbers(name, distinct)) or list(_list_answers(name, distinct))
    )


def _list_times(name: str, texts: Sequence[str]) -> Iterator[Spelling]:
    """List the patterns that fit every value, one for each order of day and month."""
    fitting = tuple(list_time_patterns(texts))
    among = f"all values are such as {texts[0]!r}"
    unclear = "; no value tells day and month apart: choose one" if len(fitting) > 1 else ""
    for kind, pattern in fitting:
        yield Spelling(name, f"{among}{unclear}", entry={"type": kind, "format": pattern})


def _list_numbers(name: str, texts: Sequence[str]) -> Iterator[Spelling]:
    """List the way in which every value is a number, unless another mark of decimals would do as well."""
    fitting = [marks for marks in _MARKS if all(map(_make_pattern(*marks).fullmatch, texts))]
    if not fitting or len({mark for mark, _ in fitting}) > 1:
        return
    mark, group = fitting[0]
    plain = [text.replace(group, "").replace(mark, ".") for text in texts]
    scale = max(len(text.partition(".")[2]) for text in plain)
    digits = max(len(text.partition(".")[0].lstrip("+-")) for text in plain) + scale
    if digits > _MOST_PRECISION:
        return
    bare = (
        f"replace({_quote(name)}, {_quote_text(group)}, '')" if any(group in text for text in texts) else _quote(name)
    )
    number = bare if mark == "." else f"replace({bare}, ',', '.')"
    yield Spelling(
        name,
        f"all values are numbers such as {texts[0]!r}",
        expression=f"CAST({number} AS DECIMAL({max(digits, _LEAST_PRECISION)},{scale}))",
    )


def _make_pattern(mark: str, group: str) -> re.Pattern[str]:
    mark, group = re.escape(mark), re.escape(group)
    return re.compile(rf"[+-]?(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|0|[1-9][0-9]*)(?:{mark}[0-9]+)?")


def _list_answers(name: str, texts: Sequence[str]) -> Iterator[Spelling]:
    words = {text.lower(): text for text in texts}
    for yes, no in _ANSWERS:
        if words.keys() == {yes, no}:
            # A word that is neither ends the load, since the cast refuses it.
            cases = f"WHEN {_quote_text(yes)} THEN true WHEN {_quote_text(no)} THEN false"
            made = f"CASE lower({_quote(name)}) {cases} ELSE CAST({_quote(name)} AS BOOLEAN) END"
            yield Spelling(name, f"all values are {words[yes]!r} or {words[no]!r}", expression=made)


def write_statement(spellings: Sequence[Spelling], view: str) -> str:
    """Write the statement over ``view`` that types the columns that only SQL can."""
    names = ", ".join(_quote(spelling.column) for spelling in spellings)
    made = ", ".join(f"{spelling.expression} AS {_quote(spelling.column)}" for spelling in spellings)
    return f"SELECT * EXCEPT ({names}), {made} FROM {view}"


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quote_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
