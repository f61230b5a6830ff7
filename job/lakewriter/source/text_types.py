"""Propose a type for a column of text, from its values.

Values come as Spark delivers them. A type is proposed if the load's conversion, which is Spark's ANSI cast in UTC,
takes every value and none becomes another: the cast also takes ``01234`` as a number, ``1d`` as a double and ``10:00``
as a time of today.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.report import format_count
from lakewriter.spec.model import Model

_SHOWN: Final = 40
_PADDING: Final = " \t\r\n"
_EXAMPLES: Final = 3
_EXACT_DIGITS: Final = 15
"""A double gives back every number of so many digits. https://en.cppreference.com/w/cpp/types/numeric_limits/digits10"""
_SMALLEST: Final = 2.2250738585072014e-308
"""Doubles closer to zero have fewer digits."""
_MOST_DIGITS: Final = 38
_PHONE_DIGITS: Final = 7

_INTEGER: Final = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_DECIMAL: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)")
_EXPONENT: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+")
_ZEROS: Final = re.compile(r"[+-]?0[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_SPECIAL: Final = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{1,2}-[0-9]{1,2})[ T]"
    r"(?:[01]?[0-9]|2[0-3])(?::[0-5]?[0-9](?::[0-5]?[0-9](?:\.([0-9]*))?"
    r"( ?(?:Z|UTC|[+-](?:0[0-9]|1[0-7])(?::?[0-5][0-9])?))?)?)?"
)
_TIME: Final = re.compile(r"T?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?[AaPp][Mm])?")
_OTHER_DATE: Final = re.compile(
    r"[0-9]{1,4}[./][0-9]{1,2}[./][0-9]{1,4}.*|[0-9]{4}-[0-9]{1,2}|[0-9]{2}-[0-9]{2}-[0-9]{4}.*"
)
_COMMA: Final = re.compile(r"[+-]?[0-9]{1,3}(?:[.,'_ ]?[0-9]{3})*(?:,[0-9]+)?")
_STAND_IN: Final = re.compile(r"[A-Za-z/.?\\ -]+")
_YAML_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "null", "true", "false"})
_SECONDS: Final = range(10**9, 4 * 10**9)
_ODDITIES: Final = (
    (_ZEROS, "has a leading zero, as codes have"),
    (_TIME, "is a time of day without a date"),
    (_DATE, "is no date of the calendar"),
    (_OTHER_DATE, "is not a date as Spark takes it (2026-01-31)"),
    (_COMMA, "is not a number as Spark takes it (1234.5)"),
    (_EXPONENT, "is beyond the range of a double"),
)
"""What a value looks like that is no number, date or time, and why it is not."""


class _Kind(StrEnum):
    """What one value is; the words complete "3 of 4 values are"."""

    INTEGER = "whole numbers"
    LONG = "whole numbers beyond 64 bits"
    DECIMAL = "numbers"
    SCIENTIFIC = "numbers with an exponent"
    SPECIAL = "NaN or Infinity"
    BOOLEAN = "true or false"
    ANSWER = "yes or no"
    DATE = "dates"
    TIMESTAMP = "times"
    BLANK = "blank"
    TEXT = "text"


_NUMBERS: Final = (_Kind.INTEGER, _Kind.LONG, _Kind.DECIMAL, _Kind.SCIENTIFIC, _Kind.SPECIAL)
_FAMILIES: Final = ((_NUMBERS, "numbers"), ((_Kind.DATE, _Kind.TIMESTAMP), "dates or times"),
                    ((_Kind.BOOLEAN, _Kind.ANSWER), "true or false"))  # fmt: skip
_ANSWERS: Final = {"yes": "no", "y": "n", "t": "f"}


class Proposal(Model):
    """The type for a column under ``columns:``, None where it stays text; ``reason`` says what its values are.

    ``looked_at`` counts all values, ``nulls`` those among them that are null.
    """

    type: str | None
    looked_at: int
    nulls: int
    reason: str
    examples: tuple[str, ...] = ()


class _Values:
    """The distinct values of a column by kind, and how often each occurs."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.kinds: dict[_Kind, list[str]] = {}
        for text in counts:
            self.kinds.setdefault(_classify(text), []).append(text)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def are(self, *kinds: _Kind) -> bool:
        return self.kinds.keys() <= set(kinds)

    def count(self, kinds: Iterable[_Kind]) -> int:
        return sum(self.counts[text] for kind in kinds for text in self.kinds.get(kind, ()))


def propose_type(values: pa.Array | pa.ChunkedArray) -> Proposal:
    """Propose the type that a column of text could be declared with, or say why it stays as it is."""
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
    """A proposal for each column of text that is not ``declared`` and whose name no other column has."""
    known = {name.lower() for name in declared}
    names = rows.column_names
    return {
        name: propose_type(rows.column(place))
        for place, name in enumerate(names)
        if pt.is_string(rows.schema.types[place]) and name.lower() not in known and names.count(name) == 1
    }


def write_columns_line(types: Mapping[str, str]) -> str:
    """The line of lake.yaml that declares ``types``."""
    return f"columns: {{{', '.join(f'{_quote_name(name)}: {_quote_type(kind)}' for name, kind in types.items())}}}"


def _quote_name(name: str) -> str:
    """A column's name as YAML reads it as text."""
    is_plain = name.isidentifier() and name.isascii() and name.lower() not in _YAML_WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _quote_type(kind: str) -> str:
    """A type as the value of a YAML mapping in one line, where a comma ends it."""
    return f'"{kind}"' if "," in kind else kind


def _propose(values: _Values) -> tuple[str | None, str]:
    every = f"all values ({values.total:,}) are"
    if values.are(*_NUMBERS):
        return _propose_number(values, every)
    if values.are(_Kind.DATE):
        return "date", f"{every} dates, such as {_show_first(values)}"
    if values.are(_Kind.DATE, _Kind.TIMESTAMP):
        return _propose_timestamp(values, every)
    if values.are(_Kind.BOOLEAN):
        return "boolean", f"{every} true or false"
    if values.are(_Kind.BOOLEAN, _Kind.ANSWER):
        return _propose_answers(values, every)
    return None, _explain_text(values)


def _propose_number(values: _Values, every: str) -> tuple[str | None, str]:
    texts = [text.strip(_PADDING) for text in values.counts]
    if phone := next((text for text in texts if text[0] == "+" and _count_digits(text) >= _PHONE_DIGITS), None):
        return None, f"{_show(phone)} begins with a plus sign, as phone numbers do"
    if values.are(_Kind.INTEGER):
        lowest, highest = min(map(int, texts)), max(map(int, texts))
        epoch = "; they could be seconds since 1970" if lowest in _SECONDS and highest in _SECONDS else ""
        return "bigint", f"{every} whole numbers, from {lowest} to {highest}{epoch}"
    if values.are(_Kind.SPECIAL):
        return None, f"{every} NaN or Infinity, and none is a number"
    if all(map(_is_exact_double, texts)):
        return "double", f"{every} numbers, such as {_show_first(values)}"
    if values.are(_Kind.INTEGER, _Kind.LONG, _Kind.DECIMAL):
        scale = max(len(text.partition(".")[2]) for text in texts)
        whole = max(_count_digits(text.partition(".")[0]) for text in texts)
        if whole + scale <= _MOST_DIGITS:
            longest = max(texts, key=_count_digits)
            return (
                f"decimal({_MOST_DIGITS},{scale})",
                f"{every} numbers, and {_show(longest)} has more digits than a double",
            )
    worst = next(text for text in texts if not _is_exact_double(text))
    return None, f"{_show(worst)} is a number that neither a double nor a decimal holds beside the others"


def _propose_timestamp(values: _Values, every: str) -> tuple[str | None, str]:
    texts = [(text, match) for text in values.counts if (match := _TIMESTAMP.fullmatch(text.strip(_PADDING)))]
    fine = next((text for text, match in texts if (match[2] or "")[6:].strip("0")), None)
    if fine is not None:
        return None, f"{_show(fine)} is finer than the microseconds of a timestamp, which would cut it"
    zoned = sum(bool(match[3]) for _, match in texts)
    zone = "" if zoned == len(values.counts) else "; taken as UTC where they name no zone"
    return "timestamp", f"{every} times, such as {_show(texts[0][0])}{zone}"


def _propose_answers(values: _Values, every: str) -> tuple[str | None, str]:
    answers = {text.strip(_PADDING).lower() for text in values.kinds[_Kind.ANSWER]}
    pairs = [{yes, no} for yes, no in _ANSWERS.items() if answers & {yes, no}]
    if len(pairs) == 1 and answers == pairs[0] and _Kind.BOOLEAN not in values.kinds:
        return "boolean", f"{every} {_show_pair(values)}"
    # NO alone is a country, and a column of Y may hold other letters later.
    return None, f"{_show(values.kinds[_Kind.ANSWER][0])} is taken as true or false only beside its opposite"


def _explain_text(values: _Values) -> str:
    """Say what keeps the column text, best beside what most of its values are."""
    family, words = max(_FAMILIES, key=lambda family: values.count(family[0]))
    fitting = values.count(family)
    odd = [text for kind, texts in values.kinds.items() if kind not in family for text in texts]
    commonest = max(odd, key=lambda text: values.counts[text])
    if not fitting:
        return _explain_value(commonest)
    said = f"{fitting:,} of {format_count(values.total, 'value')} are {words}, but {_explain_value(commonest)}"
    if len(odd) > 1 or _classify(commonest) is not _Kind.TEXT or not _STAND_IN.fullmatch(commonest):
        return said
    return f"{said}; if it stands for null, a CSV source can have options: {{nullValue: {json.dumps(commonest)}}}"


def _explain_value(text: str) -> str:
    bare, shown = text.strip(_PADDING), _show(text)
    if not bare:
        return f"{shown} is blank, and only null converts"
    if _classify(text) is not _Kind.TEXT:
        return f"{shown} is not"
    return f"{shown} {next((reason for pattern, reason in _ODDITIES if pattern.fullmatch(bare)), 'is text')}"


def _classify(text: str) -> _Kind:
    bare = text.strip(_PADDING)
    checks: tuple[tuple[Callable[[str], object], _Kind], ...] = (
        (lambda t: not t, _Kind.BLANK),
        (_INTEGER.fullmatch, _Kind.INTEGER),
        (_DECIMAL.fullmatch, _Kind.DECIMAL),
        (_is_date, _Kind.DATE),
        (_is_timestamp, _Kind.TIMESTAMP),
        (_is_finite, _Kind.SCIENTIFIC),
        (_SPECIAL.fullmatch, _Kind.SPECIAL),
        (lambda t: t.lower() in ("true", "false"), _Kind.BOOLEAN),
        (lambda t: t.lower() in {*_ANSWERS, *_ANSWERS.values()}, _Kind.ANSWER),
    )
    kind = next((kind for check, kind in checks if check(bare)), _Kind.TEXT)
    return _Kind.LONG if kind is _Kind.INTEGER and not -(2**63) <= _to_int(bare) < 2**63 else kind


def _to_int(text: str) -> int:
    # Python refuses to convert thousands of digits: so many are beyond 64 bits in any case.
    return int(text) if len(text) <= _MOST_DIGITS else 10**_MOST_DIGITS


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    return match is not None and _is_date(match[1])


def _is_finite(text: str) -> bool:
    """True for a number with an exponent that is within the range of a double."""
    if _EXPONENT.fullmatch(text) is None:
        return False
    number = float(text)
    mantissa = re.split("[eE]", text)[0]
    return math.isfinite(number) and (abs(number) >= _SMALLEST or not mantissa.strip("+-0."))


def _is_exact_double(text: str) -> bool:
    mantissa = re.split("[eE]", text)[0]
    return _SPECIAL.fullmatch(text) is not None or len(mantissa.replace(".", "").lstrip("+-0")) <= _EXACT_DIGITS


def _count_digits(text: str) -> int:
    return sum(character.isdigit() for character in text)


def _show_first(values: _Values) -> str:
    special = values.kinds.get(_Kind.SPECIAL, ())
    return _show(next(text for text in values.counts if text not in special))


def _show_pair(values: _Values) -> str:
    common = Counter(values.counts).most_common(2)
    return " or ".join(_show(text) for text, _ in common)


def _show(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
