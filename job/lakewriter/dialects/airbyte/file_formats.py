"""The file formats of Airbyte's S3 destination, under the JSON keys of its own configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, field_validator

from lakewriter.dialects.common.form import allow_blanks
from lakewriter.spec.model import FileModel, Model

BLANK: Final[tuple[Any, ...]] = ("", None, {})
"""Values that count as absent."""

Flattening = Literal["No flattening", "Root level flattening"]


class _Part(FileModel):
    """An object of a configuration, in which what is blank counts as absent."""

    model_config = ConfigDict(json_schema_extra=allow_blanks)


class NoCompression(_Part):
    """Plain text."""

    compression_type: Literal["No Compression"]
    """Whether the files are compressed."""


class Gzip(_Part):
    """The file's name ends in .gz, such as .csv.gz or .jsonl.gz."""

    compression_type: Literal["GZIP"] = "GZIP"
    """Whether the files are compressed."""


Compression = Annotated[NoCompression | Gzip, Field(discriminator="compression_type")]


class _Text(_Part):
    flattening: Flattening = "No flattening"
    """Whether a record is one column, or each property of its root has a column of its own."""
    compression: Compression = Gzip()
    """Whether the files are compressed."""

    @property
    def gzip(self) -> bool:
        """True if the file is compressed."""
        return isinstance(self.compression, Gzip)


class Csv(_Text):
    """A header, and a line for each record."""

    format_type: Literal["CSV"]
    """The format of the files."""


class JsonLines(_Text):
    """An object on a line of its own for each record."""

    format_type: Literal["JSONL"]
    """The format of the files."""


class NoCodec(_Part):
    """Blocks as they are."""

    codec: Literal["no compression"] = "no compression"
    """How blocks are compressed."""


class Deflate(_Part):
    """Level 0 stores, 9 compresses most."""

    codec: Literal["Deflate"]
    """How blocks are compressed."""
    compression_level: int = Field(0, ge=0, le=9)
    """How much time is spent for smaller files."""


class Bzip2(_Part):
    """It has no levels."""

    codec: Literal["bzip2"]
    """How blocks are compressed."""


class Xz(_Part):
    """Levels 0 to 3 are fast; 7 to 9 need a lot of memory."""

    codec: Literal["xz"]
    """How blocks are compressed."""
    compression_level: int = Field(6, ge=0, le=9)
    """How much time is spent for smaller files."""


class Zstandard(_Part):
    """Negative levels are fast; levels above 18 need a lot of memory."""

    codec: Literal["zstandard"]
    """How blocks are compressed."""
    compression_level: int = Field(3, ge=-5, le=22)
    """How much time is spent for smaller files."""
    include_checksum: bool = False
    """Whether every block has a checksum."""


class Snappy(_Part):
    """It has no levels."""

    codec: Literal["snappy"]
    """How blocks are compressed."""


AvroCodec = Annotated[NoCodec | Deflate | Bzip2 | Xz | Zstandard | Snappy, Field(discriminator="codec")]


class Avro(_Part):
    """Binary rows with their schema, always flattened."""

    format_type: Literal["Avro"]
    """The format of the files."""
    compression_codec: AvroCodec = NoCodec()
    """How data is compressed inside the file."""

    @field_validator("compression_codec", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        return (
            value | {"codec": _normalise_codec(value["codec"])}
            if isinstance(value, dict) and "codec" in value
            else value
        )


class Parquet(_Part):
    """Columns with their schema, always flattened."""

    format_type: Literal["Parquet"]
    """The format of the files."""
    compression_codec: Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"] = "UNCOMPRESSED"
    """How data is compressed inside the file."""
    block_size_mb: int = Field(128, ge=1)
    """The size of a row group, which is held in memory: larger ones read faster and take more memory to write."""
    max_padding_size_mb: int = Field(8, ge=0)
    """It has no effect on S3, where row groups are not aligned."""
    page_size_kb: int = Field(1024, ge=1)
    """The smallest part that is read to get at one record."""
    dictionary_page_size_kb: int = Field(1024, ge=1)
    """The most that the dictionary of a column in a row group takes."""
    dictionary_encoding: bool = True
    """Whether repeated values are written once."""

    @field_validator("compression_codec", mode="before")
    @classmethod
    def _no_lzo(cls, value: Any) -> Any:
        if value == "LZO":
            raise ValueError("no Parquet writer or reader here has LZO; take 'SNAPPY' or 'LZ4' for speed, or 'ZSTD'")
        return value


Format = Annotated[Csv | JsonLines | Avro | Parquet, Field(discriminator="format_type")]
FORMATS: Final[dict[str, type[Model]]] = {"CSV": Csv, "JSONL": JsonLines, "Avro": Avro, "Parquet": Parquet}
COMPRESSIONS: Final[dict[str, type[Model]]] = {"No Compression": NoCompression, "GZIP": Gzip}
CODECS: Final[dict[str, type[Model]]] = {
    "no compression": NoCodec,
    "Deflate": Deflate,
    "bzip2": Bzip2,
    "xz": Xz,
    "zstandard": Zstandard,
    "snappy": Snappy,
}
"""The models of formats and of their own objects, by what tells them apart."""

EXTENSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "CSV": (".csv", ".csv.gz"),
    "JSONL": (".jsonl", ".jsonl.gz"),
    "Avro": (".avro",),
    "Parquet": (".parquet",),
}
"""Values of ``{format_extension}`` by format, without compression of the whole file and with it."""

_CODEC_NAMES: Final = {name.lower(): name for name in CODECS}

FORMAT_TAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "format_type": tuple(FORMATS),
    "compression_type": tuple(COMPRESSIONS),
    "codec": tuple(CODECS),
}
"""The keys that tell the members of unions apart, each with what it may hold."""


def find_part_model(value: Mapping[str, Any]) -> type[Model] | None:
    """Return the model of a format's own object; None for an unknown one."""
    return (
        CODECS.get(str(_normalise_codec(value["codec"])))
        if "codec" in value
        else COMPRESSIONS.get(str(value.get("compression_type")))
    )


def drop_blanks(value: Any) -> Any:
    """Return a format without what is blank in it; an object of nothing else is blank too."""
    if not isinstance(value, dict):
        return value
    filled = {key: drop_blanks(item) for key, item in value.items()}
    return {key: item for key, item in filled.items() if item not in BLANK}


def _normalise_codec(name: Any) -> Any:
    """Return a codec as the configuration writes it: the documents have 'deflate' and 'No compression'."""
    return _CODEC_NAMES.get(name.lower(), name) if isinstance(name, str) else name
