"""The entries of ``columns:`` in a lake.yaml: a type, or a type and how its values are spelled."""

from typing import Annotated, Self

import pyarrow.types as pt
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from lakewriter.cast.exact_text import Unit
from lakewriter.cast.sql_types import parse_columns, parse_type
from lakewriter.cast.time_patterns import compile_pattern
from lakewriter.spec.model import FileModel
from lakewriter.spec.table_spec import ColumnType


def _check_type(text: str) -> str:
    parse_type(text)
    return text


def check_columns(text: str) -> str:
    """Return ``text`` if it is a list of columns with types; ``ValueError`` otherwise."""
    parse_columns(text)
    return text


TypeText = Annotated[str, AfterValidator(_check_type)]


class ColumnEntry(FileModel):
    """A column's type, how its values are spelled where it is not the default, and what the source called it before."""

    type: TypeText | None = None
    """The type, such as ``timestamp`` or ``decimal(10,2)``."""
    from_: Unit | None = Field(None, alias="from")
    """What the values are where they are not texts of the type. Of a ``timestamp`` or ``timestamp_ntz`` what numbers
    count since 1970: ``epoch_s``, ``epoch_ms``, ``epoch_us`` or ``epoch_ns``; of a ``date`` ``epoch_days``. Of a
    ``decimal`` or ``binary`` ``base64``: a decimal's bytes are its number without the point, as Kafka Connect writes
    it."""
    format: str | None = None
    """The pattern of a ``date``, ``timestamp`` or ``timestamp_ntz``, in Spark's letters, such as ``dd.MM.yyyy HH:mm``.
    Without it dates are ``YYYY-MM-DD``, times ``YYYY-MM-DD hh:mm:ss``."""
    renamed_from: str | None = Field(None, min_length=1)
    """The name that the source had for the column before. The next load of an Iceberg table renames its column in the
    same commit, so that it keeps its values; later loads leave it as it is."""

    @field_validator("from_")
    @classmethod
    def _is_of_type(cls, unit: Unit | None, info: ValidationInfo) -> Unit | None:
        if unit is None or info.data.get("type") is None:
            return unit
        kind = parse_type(info.data["type"])
        of_types = {
            "epoch_days": ("date", pt.is_date(kind)),
            "base64": ("decimal and binary", pt.is_decimal(kind) or pt.is_binary(kind)),
        }
        name, fits = of_types.get(unit, ("timestamp and timestamp_ntz", pt.is_timestamp(kind)))
        if not fits:
            raise ValueError(f"it is for {name}, not for {info.data['type']}")
        return unit

    @field_validator("format")
    @classmethod
    def _is_of_time(cls, pattern: str | None, info: ValidationInfo) -> str | None:
        if pattern is None or info.data.get("type") is None:
            return pattern
        kind = parse_type(info.data["type"])
        if info.data.get("from_") is not None:
            raise ValueError("expected 'from' or 'format', got both")
        if not pt.is_temporal(kind):
            raise ValueError(f"it is for date, timestamp and timestamp_ntz, not for {info.data['type']}")
        if compile_pattern(pattern).has_offset and not getattr(kind, "tz", None):
            raise ValueError(f"it has an offset or a zone, which {info.data['type']} has not")
        return pattern

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.type is None and (self.from_ is not None or self.format is not None or self.renamed_from is None):
            raise ValueError("it has no 'type'; expected one such as 'timestamp', or 'renamed_from' alone")
        return self

    @property
    def column_type(self) -> ColumnType | None:
        """The neutral form; None for a column whose type is the source's."""
        if self.type is None:
            return None
        return ColumnType(type=self.type, unit=self.from_, format=self.format)
