"""The entries of ``columns:`` in a lake.yaml: a type, or a type and how its values are spelled."""

from typing import Annotated

import pyarrow.types as pt
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from lakewriter.cast.exact_text import EpochUnit
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
    """A column's type, and how its values are spelled where it is not the default."""

    type: TypeText
    """The type, such as ``timestamp`` or ``decimal(10,2)``."""
    from_: EpochUnit | None = Field(None, alias="from")
    """What the values of a ``timestamp`` or ``timestamp_ntz`` count since 1970 where they are numbers: ``epoch_s``,
    ``epoch_ms``, ``epoch_us`` or ``epoch_ns``."""
    format: str | None = None
    """The pattern of a ``date``, ``timestamp`` or ``timestamp_ntz``, in Spark's letters, such as ``dd.MM.yyyy HH:mm``.
    Without it dates are ``YYYY-MM-DD``, times ``YYYY-MM-DD hh:mm:ss``."""

    @field_validator("from_")
    @classmethod
    def _counts_time(cls, unit: EpochUnit | None, info: ValidationInfo) -> EpochUnit | None:
        if unit is not None and "type" in info.data and not pt.is_timestamp(parse_type(info.data["type"])):
            raise ValueError(f"it is for timestamp and timestamp_ntz, not for {info.data['type']}")
        return unit

    @field_validator("format")
    @classmethod
    def _is_of_time(cls, pattern: str | None, info: ValidationInfo) -> str | None:
        if pattern is None or "type" not in info.data:
            return pattern
        kind = parse_type(info.data["type"])
        if info.data.get("from_") is not None:
            raise ValueError("expected 'from' or 'format', got both")
        if not pt.is_temporal(kind):
            raise ValueError(f"it is for date, timestamp and timestamp_ntz, not for {info.data['type']}")
        if compile_pattern(pattern).has_offset and not getattr(kind, "tz", None):
            raise ValueError(f"it has an offset or a zone, which {info.data['type']} has not")
        return pattern

    @property
    def column_type(self) -> ColumnType:
        """The neutral form."""
        return ColumnType(type=self.type, unit=self.from_, format=self.format)
