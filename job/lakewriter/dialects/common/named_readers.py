"""``readers`` of a lake.yaml: which of Parquet's encodings its files have."""

from collections.abc import Iterator, Sequence
from typing import Final

from lakewriter.dialects.common.faults import FaultError
from lakewriter.report import join_first
from lakewriter.spec.encodings import FileEncoding, ParquetEncoding
from lakewriter.spec.readers import DELTA, READERS, ReaderName, list_common_encodings
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Mode

_MOST_NAMED: Final = 5


def fit_readers(spec: Spec, readers: Sequence[ReaderName], *, delta: bool) -> Spec:
    """Return the same pipeline with Parquet files in the encodings that all of ``readers`` read; if none is named, in
    dictionary and plain encoding only. With ``delta`` they have DELTA encodings for all readers."""
    if not readers and not delta:
        return spec

    def fit(encoding: FileEncoding) -> FileEncoding:
        if not isinstance(encoding, ParquetEncoding):
            raise FaultError(("readers",), f"is for Parquet files, and this destination writes {encoding.kind}.")
        encodings = DELTA if delta else list_common_encodings(readers, encoding.codec, iceberg=spec.iceberg)
        _require_codec(readers, encoding.codec)
        return encoding.model_copy(update={"value_encodings": encodings})

    tables = tuple(
        table.model_copy(update={"encoding": fit(table.encoding)}) if table.encoding is not None else table
        for table in spec.tables
    )
    return spec.model_copy(update={"encoding": fit(spec.encoding), "tables": tables})


def warn_of_merges(spec: Spec, readers: Sequence[ReaderName]) -> Iterator[str]:
    """Yield a warning of readers that see rows which merges have deleted from a table."""
    tables = [table.id for table in spec.tables if table.mode is Mode.MERGE]
    if tables and (blind := [name for name in readers if not READERS[name].reads_tables]):
        yield (
            f"readers: {', '.join(blind)}: they read Parquet files by themselves, and see rows that merges have "
            f"deleted from {join_first(tables, _MOST_NAMED)}. Read the Iceberg table instead, by PyIceberg or DuckDB."
        )


def _require_codec(readers: Sequence[ReaderName], codec: str) -> None:
    for name in readers:
        if codec not in READERS[name].codecs:
            codecs = ", ".join(sorted(READERS[name].codecs))
            raise FaultError(
                ("readers",),
                f"{name!r} is not known to read Parquet files with {codec}; expected one of {codecs}.",
                remedy=f"Set the compression under destination to one of these, or leave {name} out.",
            )
