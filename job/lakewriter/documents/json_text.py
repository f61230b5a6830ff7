"""JSON text of whole Arrow columns: Arrow joins it, and only strings with special characters pass through Python."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

SPECIAL: Final = r'["\\\x00-\x1f]'
"""Characters that a JSON string holds escaped."""


def quoted(texts: pa.Array) -> pa.Array:
    """Strings as JSON strings; null stays null."""
    special = pc.fill_null(pc.match_substring_regex(texts, SPECIAL), False)
    return replaced(joined(['"', texts, '"']), special, _dumped(texts.filter(special)))


def base64(array: pa.Array) -> pa.Array:
    """Binary values as JSON strings of base64."""
    values = (None if value is None else f'"{b64encode(value).decode()}"' for value in array.to_pylist())
    return pa.array(values, pa.string())


def replaced(texts: pa.Array, mask: pa.Array, by: Iterable[Any]) -> pa.Array:
    """``texts`` with those under ``mask`` replaced in order."""
    if not pc.any(mask).as_py():
        return texts
    return pc.replace_with_mask(texts, mask, pa.array(list(by), pa.string()))


def joined(pieces: list[Any]) -> pa.Array:
    """Each row's pieces, one behind the other; null where any is."""
    join: Callable[[Any, Any], Any] = lambda left, right: pc.binary_join_element_wise(left, right, "")  # noqa: E731
    return reduce(join, pieces)


def objects(fields: Iterable[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """JSON objects of columns of JSON text; a null is written as such."""
    pieces: list[Any] = [pa.repeat(pa.scalar("{"), rows)]
    for position, (name, texts) in enumerate(fields):
        pieces.append(("," if position else "") + json.dumps(name, ensure_ascii=False) + ":")
        pieces.append(pc.fill_null(texts, "null"))
    return pc.binary_join_element_wise(*pieces, "}", "")


def _dumped(texts: pa.Array) -> list[str]:
    return [json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()]
