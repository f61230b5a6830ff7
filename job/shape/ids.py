"""Row ids: the digest of the key columns' texts."""

from collections.abc import Sequence
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from job.shape.digest import hex_digests
from job.shape.texts import texts

NULL: Final = "\\N"
SEPARATOR: Final = "|"
ESCAPE: Final = "\\"


def row_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """Lower-case hex SHA-256 of ``key_texts``; ``columns`` hold the values as they are written."""
    return hex_digests(key_texts(columns))


def key_texts(columns: Sequence[pa.Array]) -> pa.Array:
    r"""What the ids are digests of: one column's text as it is, several joined by ``|``.

    In joined texts ``\`` and ``|`` are escaped by ``\``, so no two rows with different keys have one text. Null is
    ``\N``, in one column alone too.
    """
    if len(columns) == 1:
        return pc.fill_null(texts(columns[0]), NULL)
    escaped = [_escaped(column) for column in columns]
    return pc.binary_join_element_wise(*escaped, SEPARATOR, null_handling="replace", null_replacement=NULL)


def _escaped(column: pa.Array) -> pa.Array:
    plain = texts(column)
    if not (pt.is_string(column.type) or pt.is_nested(column.type)):
        return plain
    return reduce(_escape, (ESCAPE, SEPARATOR), plain)


def _escape(array: pa.Array, character: str) -> pa.Array:
    if not pc.any(pc.match_substring(array, character)).as_py():
        return array
    return pc.replace_substring(array, character, ESCAPE + character)
