"""File formats, their codecs and levels, and the neutral encoding of each."""

from dataclasses import dataclass
from typing import Final

from lakewriter.dialects.common.problems import list_words
from lakewriter.spec.encodings import AvroEncoding, FileEncoding, ParquetEncoding, TextEncoding


@dataclass(frozen=True)
class Codec:
    """A codec: what the encoder calls it, its levels, and the one that is taken where none is given; None where the
    encoder chooses."""

    name: str
    levels: range = range(0)
    level: int | None = None


@dataclass(frozen=True)
class FileFormat:
    """A format: its codecs by the words of the file, the first of them its default, and the end of its files' names."""

    codecs: dict[str, Codec]
    extension: str


_TEXT: Final = {"gzip": Codec("gzip"), "none": Codec("")}
FORMATS: Final = {
    "parquet": FileFormat(
        {
            "zstd": Codec("zstd", range(1, 23), 3),
            "gzip": Codec("gzip", range(1, 10)),
            "brotli": Codec("brotli", range(1, 12), 5),
            "snappy": Codec("snappy"),
            "lz4": Codec("lz4"),
            "none": Codec("uncompressed"),
        },
        ".parquet",
    ),
    # https://avro.apache.org/docs/1.12.0/specification/#required-codecs: every reader has deflate.
    "avro": FileFormat(
        {
            "deflate": Codec("deflate", range(10), 6),
            "zstd": Codec("zstandard", range(1, 23), 3),
            "xz": Codec("xz", range(10), 6),
            "bzip2": Codec("bzip2"),
            "snappy": Codec("snappy"),
            "none": Codec("null"),
        },
        ".avro",
    ),
    "csv": FileFormat(_TEXT, ".csv"),
    "jsonl": FileFormat(_TEXT, ".jsonl"),
}


def check_compression(kind: str, compression: str | None, level: int | None) -> None:
    """Raise ``ValueError`` for a codec that the format does not have, or a level that the codec does not have."""
    codecs = FORMATS[kind].codecs
    if compression is not None and compression not in codecs:
        raise ValueError(
            f"'compression' {compression!r} is not for 'format: {kind}'; expected {list_words(list(codecs))}"
        )
    name = compression or next(iter(codecs))
    levels = codecs[name].levels
    if level is not None and not levels:
        raise ValueError(f"'compression_level' is for codecs with levels, and {name!r} of {kind!r} has none")
    if level is not None and level not in levels:
        default = "" if codecs[name].level is None else f" for {codecs[name].level}"
        raise ValueError(
            f"'compression_level' {level} is not for {name!r}; expected {levels[0]} to {levels[-1]}, or leave it out"
            f"{default}"
        )


def make_encoding(kind: str, compression: str | None, level: int | None) -> FileEncoding:
    """Return the neutral encoding."""
    codecs = FORMATS[kind].codecs
    codec = codecs[compression or next(iter(codecs))]
    chosen = codec.level if level is None else level
    if kind == "parquet":
        return ParquetEncoding(codec=codec.name, level=chosen)
    if kind == "avro":
        given = {"codec": codec.name, "level": chosen if codec.levels else None}
        return AvroEncoding.model_validate(given)
    return TextEncoding.model_validate({"kind": kind, "gzip": codec.name == "gzip"})


def name_extension(kind: str, compression: str | None) -> str:
    """Say what file names end with: for text the codec too, since readers use it."""
    form = FORMATS[kind]
    packed = form.codecs[compression or next(iter(form.codecs))].name == "gzip" and kind != "parquet"
    return form.extension + (".gz" if packed else "")
