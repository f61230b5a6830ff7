"""Lines of CSV, JSON and text, read by the tasks and parsed by Spark: each row is marked with its place, and whether it
is bad."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, StringType, StructField, StructType

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SpecInvalidError
from lakewriter.source.bad_rows import BAD
from lakewriter.source.byte_checks import UNREADABLE, find_codec, read_blocks
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.file_listing import keep_listed
from lakewriter.source.marks import mark
from lakewriter.source.packing import Chunk, pack_texts, read_sizes
from lakewriter.source.raw_text import find_bad_lines
from lakewriter.source.storage import NotListable, Store, list_files
from lakewriter.spec.specification import Read

_CORRUPT: Final = "__lakewriter_corrupt"
LENIENT: Final[Mapping[str, str]] = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
"""Reader options with which bad lines do not keep Spark from finding the columns of the others."""
_LINES: Final = "file string, offset bigint, line string, fault string"
_ROWS: Final = 8192
_BOM: Final = b"\xef\xbb\xbf"
_BLANKS: Final = bytes(range(33))
"""What Java trims."""
_OWN: Final = frozenset(["header", "inferschema", "samplingratio", "encoding", "charset", *map(str.lower, LENIENT)])
"""Options that are seen to here, not by the parser of lines."""
_REASONS: Final = {
    "csv": "its fields are not those of the columns",
    "json": "it is not a JSON object, or a value is not of its column's type",
    "text": "it is not UTF-8",
}


@dataclass(frozen=True)
class _Lines:
    """What a task is told: the pieces of each partition, and which lines there are no rows."""

    store: Store
    pieces: tuple[tuple[Chunk, ...], ...]
    format: str
    kind: DataType
    header: bool
    comment: bytes


def read_marked_lines(
    session: SparkSession, schema: StructType, read: Read, table: str, options: Mapping[str, str]
) -> DataFrame:
    """The rows of the files in the columns of ``schema``, then their marks. ``options`` are the reader's."""
    form = str(read.format).lower()
    try:
        store, files = list_files(read.paths)
        files = keep_listed(read, files)
        if other := next((file.path for file in files if file.path.endswith(UNREADABLE)), None):
            raise NotListable(f"{other!r} is compressed in a way that only Spark knows")
    except (NotListable, OSError, BotoCoreError, ClientError) as error:
        raise SpecInvalidError(
            f"table {table!r}: lines are read one by one to keep bad ones apart, which cannot be done here: {error}.",
            remedy="Give the files or their folder, without patterns and without folders inside; or on_bad_row: fail.",
        ) from error
    options = {key.lower(): value for key, value in options.items()}
    fields = [field for field in schema if field.name != _CORRUPT]
    pieces = pack_texts(files, read_sizes(session), lambda file: find_codec(file.path) is not None)
    header, comment = options.get("header", "false").lower() == "true", options.get("comment", "")
    lines = _Lines(store, tuple(pieces), form, StructType(fields), header, comment.encode())
    count = max(1, len(pieces))
    listed = session.range(0, count, 1, count).mapInArrow(partial(_read, lines), _LINES)
    return parse_lines(listed, schema, form, options)


def parse_lines(lines: DataFrame, schema: StructType, form: str, options: Mapping[str, str]) -> DataFrame:
    """The rows of lines in the columns of ``schema``, then their marks; ``lines`` have ``file``, ``offset``, ``line``
    and ``fault``, what a reader would change. ``options`` are the reader's."""
    # Columns go by their places: of names Spark tells only some apart.
    fields = [field for field in schema if field.name != _CORRUPT]
    options = {key: value for key, value in options.items() if key.lower() not in _OWN}
    named = fields if form == "json" else [StructField(f"c{place}", own.dataType) for place, own in enumerate(fields)]
    schema = StructType([*named, StructField(_CORRUPT, StringType())])
    options = {**options, **LENIENT}
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema)
    if form == "text":
        nothing = F.lit(None).cast("string").alias(_CORRUPT)
        parsed = F.struct(*(F.col("line").alias(field.name) for field in named), nothing)
    else:
        parsed = F.from_json("line", schema, options) if form == "json" else F.from_csv("line", ddl, options)
    rows = lines.withColumn("row", F.when(F.col("fault").isNull(), parsed))
    is_bad = F.col("row").isNull() | F.col("row").getField(_CORRUPT).isNotNull()
    reason = F.when(is_bad, F.coalesce("fault", F.lit(_REASONS[form])))
    marks = mark(file=F.col("file"), offset=F.col("offset"), value=F.when(is_bad, F.col("line")), reason=reason)
    kept = [F.when(~is_bad, F.col("row").getField(own.name)) for own in named]
    return rows.select(*kept, marks).toDF(*(field.name for field in fields), BAD)


def _read(lines: _Lines, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for chunk in lines.pieces[number] if lines.pieces else ():
                yield from _read_batches(lines, chunk)


def _read_batches(lines: _Lines, chunk: Chunk) -> Iterator[pa.RecordBatch]:
    held: list[tuple[str, int, str, str | None]] = []
    try:
        for place, line, fault in _read_rows(lines, chunk):
            held.append((chunk.path, place, line.decode(errors="backslashreplace"), fault))
            if len(held) >= _ROWS:
                yield _make_batch(held)
                held = []
    except (OSError, pa.ArrowException) as error:
        raise make_unreadable_error(chunk.path, error) from error
    if held:
        yield _make_batch(held)


def _make_batch(held: list[tuple[str, int, str, str | None]]) -> pa.RecordBatch:
    files, places, texts, faults = zip(*held, strict=True)
    arrays = [pa.array(files), pa.array(places, pa.int64()), pa.array(texts), pa.array(faults, pa.string())]
    return pa.RecordBatch.from_arrays(arrays, ["file", "offset", "line", "fault"])


def _read_rows(lines: _Lines, chunk: Chunk) -> Iterator[tuple[int, bytes, str | None]]:
    """The lines of a piece that are rows, each with its offset and what a reader would change in it."""
    heads = int(lines.header and chunk.start == 0)
    for place, line, fault in _split_lines(lines, chunk):
        text = line.removeprefix(_BOM) if place == 0 else line
        bare = text.strip(_BLANKS)
        if lines.format != "text" and (not bare or (lines.comment and bare.startswith(lines.comment))):
            continue
        if heads:
            heads = 0
            continue
        yield place, text, fault


def _split_lines(lines: _Lines, chunk: Chunk) -> Iterator[tuple[int, bytes, str | None]]:
    for start, block in read_blocks(lines.store.open(), chunk):
        faults = find_bad_lines(block, lines.kind if lines.format == "json" else None)
        place = 0
        for line in block.splitlines(keepends=True):
            yield start + place, line.rstrip(b"\r\n"), faults.get(place)
            place += len(line)
