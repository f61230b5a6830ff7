"""Files of JSON read through the reader as a load reads them, and the same files by Python's json."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.source.bad_rows import BAD
from lakewriter.source.files.file_reader import Item, Result
from lakewriter.source.files.json_reader import JsonReader
from lakewriter.source.files.known_types import fill_void
from lakewriter.source.files.spark_options import take_options
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import pin_local

ANY_SIZE = 10**9


@dataclass(frozen=True)
class ReadRow:
    """A row: its values by column, where it begins, and if it is bad why, its text, and the column to blame."""

    values: dict[str, Any]
    offset: int
    reason: str | None
    text: str | None
    column: str | None


def read_files(
    folder: Path,
    *contents: bytes,
    columns: pa.Schema | None = None,
    size: int = ANY_SIZE,
    options: Mapping[str, str] | None = None,
) -> tuple[pa.Schema, list[ReadRow]]:
    """Return the columns, as they are read, and the rows of files with these contents, in pieces of about ``size``
    bytes."""
    files = [write_file(folder / f"{number}.json", content) for number, content in enumerate(contents)]
    reader = JsonReader.make(take_options("json", options or {}, "t"), columns)
    look = reader.look(files, "t", spread)
    schema = pa.schema([field.with_type(fill_void(field.type)) for field in look.schema])
    rows: list[ReadRow] = []
    for piece in reader.cut(look, size, spread):
        batches = list(reader.read(piece, schema))
        assert sum(batch.num_rows for batch in batches) == reader.count(piece)
        rows += [_make_row(row) for batch in batches for row in batch.to_pylist()]
    return schema, rows


def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` for each item, in this process."""
    return [work(item) for item in items]


def write_file(path: Path, content: bytes) -> StoredFile:
    """Write a file whose time of change is another than that of the one before it."""
    path.write_bytes(content)
    os.utime(path)
    return StoredFile(str(path), *pin_local(path))


def _make_row(row: dict[str, Any]) -> ReadRow:
    mark = row.pop(BAD)
    return ReadRow(row, mark["offset"], mark["reason"], mark["value"], mark["column"])


class Digits(str):
    """A number as it is written."""

    __slots__ = ()


def parse_by_python(line: bytes) -> Any:
    """Return the value of a JSON text by Python's json; ``ValueError`` for what the product refuses too."""
    value = _DECODER.decode(line.decode())
    json.dumps(value, ensure_ascii=False).encode()
    return value


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is twice")
    return made


def _refuse(text: str) -> None:
    raise ValueError(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_make_object, parse_int=Digits, parse_float=Digits, parse_constant=_refuse
)


def is_same(read: Any, written: Any, kind: pa.DataType) -> bool:
    """Return whether a value was read as ``kind`` without losing anything that was written."""
    if written is None or read is None:
        return read is written
    if pt.is_struct(kind):
        return isinstance(written, dict) and all(is_same(read[f.name], written.get(f.name), f.type) for f in kind)
    if pt.is_list(kind):
        pairs = zip(read, written, strict=True)
        return isinstance(written, list) and all(is_same(one, other, kind.value_type) for one, other in pairs)
    if pt.is_string(kind):
        return bool(read == (written if type(written) is str else write_compact(written)))
    if isinstance(written, Digits):
        is_zero = written == "-0"
        return Decimal(repr(read) if isinstance(read, float) else read) == Decimal(written) and (
            not is_zero or repr(read) in ("-0.0", "0")
        )
    return read is written


def write_compact(value: Any) -> str:
    """Return a parsed value as compact JSON with the digits that it was written with."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}:{write_compact(member)}" for key, member in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(write_compact, value))}]"
    return str(value) if isinstance(value, Digits) else json.dumps(value, ensure_ascii=False)
