"""Propose a type for a column of text: one to which the strict cast converts every value.

A proposal is stricter than a declared type: ``01234`` converts to a number and is likely a code.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.spelling_table import STRICT
from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.strict_cast import cast_text, explain_misfit
from lakewriter.report import format_count
from lakewriter.spec.model import Model
from lakewriter.spec.table_spec import ColumnType

_SHOWN: Final = 40
_EXAMPLES: Final = 3
EXACT_DIGITS: Final = 15
"""A double stores every number of up to so many digits. https://en.cppreference.com/w/cpp/types/numeric_limits/digits10"""
_SMALLEST: Final = 2.2250738585072014e-308
"""Doubles closer to zero have fewer digits."""
_MOST_DIGITS: Final = 38
_PHONE_DIGITS: Final = 7

_ZEROS: Final = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_STAND_IN: Final = re.compile(r"[A-Za-z/.?\\ -]+")
_PLAIN_FORMAT: Final = re.compile(r"[A-Za-z](?:[A-Za-z./ -]*[A-Za-z])?")
_YAML_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "null", "true", "false"})
_SECONDS: Final = range(10**9, 4 * 10**9)
_ODDITIES: Final = (
    (re.compile(r"\s*"), "is blank, and only null converts"),
    (re.compile(r"\s.*|.*\s"), "has blanks around it"),
    (_ZEROS, "has a leading zero, as codes have"),
    (re.compile(r"T?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AaPp][Mm])?"),
     "is a time of day without a date"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "is not a date of the calendar"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]+\.[0-9]{7,}.*"),
     "is finer than the microseconds of a timestamp; nanoseconds: truncate would cut it"),
    (re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T].*"), "is not a time as it is taken (2026-01-31 10:00:00)"),
    (re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}.*|[0-9]{4}-[0-9]{1,2}"),
     "is not a date as it is taken (2026-01-31); its spelling can be named by format:"),
    (re.compile(r"[+-]?[0-9]{1,3}(?:[.,'_ ]?[0-9]{3})*(?:,[0-9]+)?"), "is not a number as it is taken (1234.5)"),
)  # fmt: skip
"""Patterns of values that are not numbers, dates or times, and the reasons."""

_FAMILIES: Final = {"double": "numbers", "timestamp": "dates or times", "boolean": "true or false"}
_ANSWERS: Final = {"yes": "no", "y": "n", "t": "f"}


class Proposal(Model):
    """The type for a column under ``columns:``, None if it stays text; ``reason`` describes its values.

    ``looked_at`` counts all values, ``nulls`` the nulls among them.
    """

    type: str | None
    looked_at: int
    nulls: int
    reason: str
    examples: tuple[str, ...] = ()


class _Values:
    """The distinct values of a column, and how often each occurs."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.texts = list(counts)
        self._fitting: dict[str, frozenset[str]] = {}

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @cached_property
    def codes(self) -> frozenset[str]:
        """The values that are not numbers though they convert to one."""
        return frozenset(filter(_ZEROS.fullmatch, self.texts))

    def list_fitting(self, kind: str) -> frozenset[str]:
        """Return the values that convert to a type."""
        if kind not in self._fitting:
            values = cast_text(pa.array(self.texts, pa.string()), parse_type(kind)).values.is_valid()
            fitting = {text for text, is_value in zip(self.texts, values.to_pylist(), strict=True) if is_value}
            self._fitting[kind] = frozenset(fitting) - (frozenset() if kind == "boolean" else self.codes)
        return self._fitting[kind]

    def are(self, kind: str) -> bool:
        return len(self.list_fitting(kind)) == len(self.texts)

    def count(self, texts: Iterable[str]) -> int:
        return sum(self.counts[text] for text in texts)


def propose_type(values: pa.Array | pa.ChunkedArray) -> Proposal:
    """Propose the type with which a column of text could be declared, or give the reason why it stays text."""
    looked_at, nulls = len(values), values.null_count
    if pt.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
        nulls = values.null_count
    if not (pt.is_string(values.type) or pt.is_large_string(values.type) or pt.is_string_view(values.type)):
        return Proposal(type=None, looked_at=looked_at, nulls=nulls, reason=f"it is {values.type}, not text")
    # Arrow counts no values of its views.
    texts, numbers = pc.value_counts(values.cast(pa.large_string()).drop_null()).flatten()
    counts = dict(zip(texts.to_pylist(), numbers.to_pylist(), strict=True))
    if not counts:
        return Proposal(type=None, looked_at=looked_at, nulls=nulls, reason="no value but null was looked at")
    kind, reason = _propose(_Values(counts))
    examples = tuple(_cut(text) for text in list(counts)[:_EXAMPLES])
    return Proposal(type=kind, looked_at=looked_at, nulls=nulls, reason=reason, examples=examples)


def propose_types(rows: pa.Table, declared: Collection[str] = ()) -> dict[str, Proposal]:
    """Return a proposal for each column of text that is not ``declared`` and whose name no other column has."""
    declared_names = {name.lower() for name in declared}
    names = rows.column_names
    return {
        name: propose_type(rows.column(index))
        for index, name in enumerate(names)
        if pt.is_string(rows.schema.types[index]) and name.lower() not in declared_names and names.count(name) == 1
    }


def write_columns_line(declared: Mapping[str, ColumnType], proposed: Mapping[str, str | ColumnType]) -> str:
    """Return the line of lake.yaml that declares the ``proposed`` types beside those that are ``declared``."""
    columns = {**declared, **proposed}
    types = {name: _quote_type(kind) if isinstance(kind, str) else _write_type(kind) for name, kind in columns.items()}
    return f"columns: {{{', '.join(f'{_quote_name(name)}: {text}' for name, text in types.items())}}}"


def _write_type(column: ColumnType) -> str:
    if column.unit:
        return f"{{type: {column.type}, from: {column.unit}}}"
    if column.format:
        is_plain = _PLAIN_FORMAT.fullmatch(column.format) is not None
        spelled = column.format if is_plain else json.dumps(column.format, ensure_ascii=False)
        return f"{{type: {column.type}, format: {spelled}}}"
    return _quote_type(column.type)


def _quote_name(name: str) -> str:
    """Return a column's name so that YAML reads it as text."""
    is_plain = name.isidentifier() and name.isascii() and name.lower() not in _YAML_WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _quote_type(kind: str) -> str:
    """Return a type as the value of a one-line YAML mapping, quoted if it has a comma."""
    return f'"{kind}"' if "," in kind else kind


def _propose(values: _Values) -> tuple[str | None, str]:
    every = f"all values ({values.total:,}) are"
    if values.are("double"):
        return _propose_number(values, every)
    if values.are("date"):
        return "date", f"{every} dates, such as {_show(values.texts[0])}"
    if values.are("timestamp"):
        return "timestamp", f"{every} times, {_describe_times(values)}"
    if values.are("boolean"):
        return _propose_boolean(values, every)
    return None, _explain_text(values)


def _propose_number(values: _Values, every: str) -> tuple[str | None, str]:
    texts = values.texts
    if phone := next((text for text in texts if text[0] == "+" and _count_digits(text) >= _PHONE_DIGITS), None):
        return None, f"{_show(phone)} begins with a plus sign, as phone numbers do"
    if values.are("bigint"):
        lowest, highest = min(map(int, texts)), max(map(int, texts))
        epoch = "; they could be seconds since 1970" if lowest in _SECONDS and highest in _SECONDS else ""
        return "bigint", f"{every} whole numbers, from {lowest} to {highest}{epoch}"
    numbers = [text for text in texts if text not in STRICT.named_numbers]
    if not numbers:
        return None, f"{every} NaN or Infinity, and none is a number"
    long = [text for text in numbers if not _is_exact_double(text)]
    if not long:
        return "double", f"{every} numbers, such as {_show(numbers[0])}"
    scale = max(len(re.split("[eE]", text)[0].partition(".")[2]) for text in texts)
    decimal = f"decimal({_MOST_DIGITS},{scale})"
    if scale <= _MOST_DIGITS and values.are(decimal):
        return decimal, f"{every} numbers, and {_show(max(long, key=_count_digits))} has more digits than a double"
    return None, f"{_show(long[0])} is a number that neither a double nor a decimal holds beside the others"


def _describe_times(values: _Values) -> str:
    local = values.list_fitting("timestamp_ntz")
    times = [text for text in values.texts if text not in values.list_fitting("date")]
    return f"such as {_show(times[0])}{'; taken as UTC where they name no zone' if local else ''}"


def _propose_boolean(values: _Values, every: str) -> tuple[str | None, str]:
    words = {text.lower() for text in values.texts}
    if words <= {"true", "false"}:
        return "boolean", f"{every} true or false"
    if any(words == {yes, no} for yes, no in _ANSWERS.items()):
        return "boolean", f"{every} {_show_pair(values)}"
    if numbers := words & {"1", "0"}:
        answer = next(text for text in values.texts if text not in numbers)
        return (
            None,
            f"{values.count(numbers):,} of {format_count(values.total, 'value')} are numbers, but "
            f"{_show(answer)} is not",
        )
    # NO alone is a country, and a column of Y may hold other letters later.
    answer = next(text for text in values.texts if text.lower() not in {"true", "false"})
    return None, f"{_show(answer)} is taken as true or false only beside its opposite"


def _explain_text(values: _Values) -> str:
    """Return the reason why the column stays text, if possible beside the type of most of its values."""
    family = max(_FAMILIES, key=lambda kind: values.count(values.list_fitting(kind)))
    fitting = values.list_fitting(family)
    odd = [text for text in values.texts if text not in fitting]
    commonest = max(odd, key=lambda text: values.counts[text])
    if not fitting:
        return _explain_value(commonest, values)
    total = format_count(values.total, "value")
    description = (
        f"{values.count(fitting):,} of {total} are {_FAMILIES[family]}, but {_explain_value(commonest, values)}"
    )
    if len(odd) > 1 or not description.endswith(" is text") or not _STAND_IN.fullmatch(commonest):
        return description
    return f"{description}; if it means null, a CSV source can have options: {{nullValue: {json.dumps(commonest)}}}"


def _explain_value(text: str, values: _Values) -> str:
    if any(text in values.list_fitting(kind) for kind in _FAMILIES):
        return f"{_show(text)} is not"
    odd = next((reason for pattern, reason in _ODDITIES if pattern.fullmatch(text)), None)
    beyond = explain_misfit(text, pa.float64())
    return f"{_show(text)} {odd or (beyond.removeprefix('it ') if 'double' in beyond else 'is text')}"


def _is_exact_double(text: str) -> bool:
    digits = len(re.split("[eE]", text)[0].replace(".", "").lstrip("+-0"))
    return digits <= EXACT_DIGITS and not 0 < abs(float(text)) < _SMALLEST


def _count_digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _show_pair(values: _Values) -> str:
    common = Counter(values.counts).most_common(2)
    return " or ".join(_show(text) for text, _ in common)


def _show(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
