"""The file formats of Airbyte's S3 destination, under the JSON keys of its own configuration."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator

from lakewriter.spec.model import Model

BLANK: Final[tuple[Any, ...]] = ("", None, {})
"""Values that count as absent."""

Flattening = Literal["No flattening", "Root level flattening"]


class NoCompression(Model):
    """Plain text."""

    compression_type: Literal["No Compression"]


class Gzip(Model):
    """The default, as documented."""

    compression_type: Literal["GZIP"] = "GZIP"


Compression = Annotated[NoCompression | Gzip, Field(discriminator="compression_type")]


class _Text(Model):
    flattening: Flattening = "No flattening"
    compression: Compression = Gzip()

    @property
    def gzip(self) -> bool:
        """Whether the file is compressed."""
        return isinstance(self.compression, Gzip)


class Csv(_Text):
    """Comma-separated values."""

    format_type: Literal["CSV"]


class JsonLines(_Text):
    """One JSON object a line."""

    format_type: Literal["JSONL"]


class NoCodec(Model):
    """Avro blocks as they are."""

    codec: Literal["no compression"] = "no compression"


class Deflate(Model):
    """Level 0 stores."""

    codec: Literal["Deflate"]
    compression_level: int = Field(0, ge=0, le=9)


class Bzip2(Model):
    """It has no levels."""

    codec: Literal["bzip2"]


class Xz(Model):
    """LZMA."""

    codec: Literal["xz"]
    compression_level: int = Field(6, ge=0, le=9)


class Zstandard(Model):
    """Negative levels are fast modes."""

    codec: Literal["zstandard"]
    compression_level: int = Field(3, ge=-5, le=22)
    include_checksum: bool = False


class Snappy(Model):
    """It has no levels."""

    codec: Literal["snappy"]


AvroCodec = Annotated[NoCodec | Deflate | Bzip2 | Xz | Zstandard | Snappy, Field(discriminator="codec")]


class Avro(Model):
    """``compression_codec`` is an object here, and a string for Parquet."""

    format_type: Literal["Avro"]
    compression_codec: AvroCodec = NoCodec()

    @field_validator("compression_codec", mode="before")
    @classmethod
    def _in_any_case(cls, value: Any) -> Any:
        return (
            value | {"codec": _normalise_codec(value["codec"])}
            if isinstance(value, dict) and "codec" in value
            else value
        )


class Parquet(Model):
    """Sizes are in the units that their names say."""

    format_type: Literal["Parquet"]
    compression_codec: Literal["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"] = "UNCOMPRESSED"
    block_size_mb: int = Field(128, ge=1)
    max_padding_size_mb: int = Field(8, ge=0)
    page_size_kb: int = Field(1024, ge=1)
    dictionary_page_size_kb: int = Field(1024, ge=1)
    dictionary_encoding: bool = True

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
"""What ``{format_extension}`` stands for in each format, without compression of the whole file and with it."""

_CODEC_NAMES: Final = {name.lower(): name for name in CODECS}

FORMAT_TAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "format_type": tuple(FORMATS),
    "compression_type": tuple(COMPRESSIONS),
    "codec": tuple(CODECS),
}
"""The keys that tell the members of unions apart, each with what it may hold."""


def find_part_model(value: Mapping[str, Any]) -> type[Model] | None:
    """The model of a format's own object, if what it says it is is known."""
    return (
        CODECS.get(str(_normalise_codec(value["codec"])))
        if "codec" in value
        else COMPRESSIONS.get(str(value.get("compression_type")))
    )


def drop_blanks(value: Any) -> Any:
    """A format without what is blank in it; an object of nothing else is blank too."""
    if not isinstance(value, dict):
        return value
    kept = {key: drop_blanks(item) for key, item in value.items()}
    return {key: item for key, item in kept.items() if item not in BLANK}


def _normalise_codec(name: Any) -> Any:
    """A codec as the configuration writes it: the documents have 'deflate' and 'No compression'."""
    return _CODEC_NAMES.get(name.lower(), name) if isinstance(name, str) else name
