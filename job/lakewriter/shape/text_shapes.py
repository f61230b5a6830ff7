"""The shapes of texts: digits are ``9`` and letters ``a``, so that a million dates have a few shapes.

They show, without keeping a value but the ends of each shape, whether the order of a column's letters is the order of
the numbers, dates and versions that it spells.
"""

import re
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.receipt import TextShapes

MOST_SHAPES: Final = 64
"""Names and random ids have more: these are plain text, whose order is that of its letters."""
_LONGEST: Final = 64
"""No number, date or version is longer."""
_MOST_RAW: Final = 16 * MOST_SHAPES
_FIRST: Final = 1024
"""Plain text has shown by then that it has many shapes."""
_OFFSET: Final = r"(?s)^(?P<local>.*:[0-9]{2}(?:[.,][0-9]+)?)(?P<offset> ?[+-][0-9]{2}(?::?[0-9]{2})?)$"
_HAS_OFFSET: Final = re.compile(r"(?s).*:99(?:[.,]9+)? ?[+-]99(?::?99)?")
_NUMBERS: Final = (
    # The digits behind a number's point sort as they are, however many there are.
    (re.compile(r"([+-]?9+)\.9+"), r"\1.9"),
    (re.compile(r"[+-]?9+(?:\.9+)?a[+-]?9+"), "9a9"),
)


def find_shapes(texts: pa.Array) -> TextShapes:
    """Return the shapes of an array of strings; null has none."""
    values = pc.utf8_slice_codeunits(texts.drop_null(), 0, _LONGEST)
    if len(values) > _FIRST and find_shapes(values[:_FIRST]).is_many:
        return TextShapes(is_many=True)
    shapes = _replace_characters(values)
    ends = _find_ends(shapes, values)
    if any(map(_HAS_OFFSET.fullmatch, ends)):
        # An offset stays as it is: times of two offsets do not sort, although their digits have one shape.
        parts = pc.extract_regex(values, _OFFSET)
        local = pc.coalesce(pc.struct_field(parts, "local"), values)
        offset = pc.fill_null(pc.struct_field(parts, "offset"), "")
        shapes = _replace_characters(local)
        ends = _find_ends(pc.binary_join_element_wise(shapes, offset, ""), values)
    if len(ends) > _MOST_RAW:
        return TextShapes(is_many=True)
    joined = TextShapes()
    for shape, pair in ends.items():
        simplest = next((p.sub(to, shape) for p, to in _NUMBERS if p.fullmatch(shape)), shape)
        joined = join_shapes(joined, TextShapes(ends={simplest: pair})) or joined
    return joined


def _replace_characters(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, r"\pL", "a"), "[0-9]", "9")


def _find_ends(shapes: pa.Array, texts: pa.Array) -> dict[str, tuple[str, str]]:
    """Return the lowest and the highest text of each shape; of more shapes than matter only the first."""
    rows = pa.table({"shape": shapes, "text": texts}).group_by("shape").aggregate([("text", "min"), ("text", "max")])
    return {row["shape"]: (row["text_min"], row["text_max"]) for row in rows.slice(0, _MOST_RAW + 1).to_pylist()}


def join_shapes(a: TextShapes | None, b: TextShapes | None) -> TextShapes | None:
    """Return the shapes of two sets of texts."""
    if a is None or b is None:
        return a or b
    if a.is_many or b.is_many:
        return TextShapes(is_many=True)
    ends = dict(a.ends)
    for shape, (low, high) in b.ends.items():
        before = ends.get(shape, (low, high))
        ends[shape] = (min(low, before[0]), max(high, before[1]))
    return _bound(ends)


def _bound(ends: dict[str, tuple[str, str]]) -> TextShapes:
    return TextShapes(is_many=True) if len(ends) > MOST_SHAPES else TextShapes(ends=ends)
