"""All that is needed to publish one table of one load, or to withdraw it, without the lake.yaml it came from."""

from collections import Counter
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lakewriter.commit.generations import SyncIntent
from lakewriter.control_object import ControlObject, is_empty, is_none, parse
from lakewriter.receipt import Batch, Cursor, InferredColumn, Receipt, SetAside
from lakewriter.report import SMALL_FILE_BYTES, TableHealth, TableReport
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import GlueService, RestService

MOST_SAMPLES: Final = 100
"""Changes that a table's report tells of, besides their number."""


class IntentAccess(Access):
    """The destination of lake.yaml as an intent keeps it."""

    model_config = ConfigDict(extra="allow")


class IntentGlue(GlueService):
    """Glue as an intent keeps it."""

    model_config = ConfigDict(extra="allow")


class IntentRest(RestService):
    """An Iceberg REST catalog of lake.yaml as an intent keeps it."""

    model_config = ConfigDict(extra="allow")


IntentService = Annotated[IntentGlue | IntentRest, Field(discriminator="kind")]


def _dump_part(value: Any) -> Any:
    """The fields of a part of lake.yaml, which allows no others, for the class that an intent keeps it as."""
    return dict(value) if isinstance(value, BaseModel) else value


class FilesAction(ControlObject):
    """No catalog: complete files are all there is to publish."""

    kind: Literal["none"] = "none"


class GlueAction(ControlObject):
    """A Hive-style table as this load needs it; names are lower case, types are Glue's.

    ``partition`` is the value of ``partition_key``, or None for a load that adds no partition. ``strategy`` names how
    partitions are cut; blank where it is not known.
    """

    kind: Literal["glue"] = "glue"
    database: str
    database_location: str
    table: str
    location: str
    columns: tuple[tuple[str, str], ...]
    partition_key: str | None
    strategy: str = ""
    compression: str | None = Field(None, exclude_if=is_none)
    """The codec of the files, where it is not gzip: 0.1.0 had no other, and takes no field for it."""
    partition: str | None
    partition_location: str | None


class IcebergAction(ControlObject):
    """An Iceberg table as it was made ready for this load; blank until then.

    ``schema_id`` and ``spec_id`` are those of its files.
    """

    kind: Literal["iceberg"] = "iceberg"
    service: IntentService
    namespace: str
    table: str
    location: str
    uuid: str = ""
    schema_id: int = 0
    spec_id: int = 0

    _service = field_validator("service", mode="before")(_dump_part)


CatalogAction = Annotated[FilesAction | GlueAction | IcebergAction, Field(discriminator="kind")]


class Intent(ControlObject):
    """Bound to a table by the replacement of its ``state.json`` that names it as pending.

    ``inferred`` is what the table's columns are after it, for documents without a schema.
    """

    version: Literal[1] = 1
    pipeline: str
    job_id: str
    attempt: str
    table_id: str
    schema_name: str
    table: str
    started: datetime
    access: IntentAccess
    catalog: CatalogAction
    receipts: tuple[Receipt, ...]
    cursor_before: Cursor | None
    cursor_after: Cursor | None
    feed: str
    staged_seconds: float
    counter_after: int | None = None
    batch: Batch | None = None
    notes: tuple[str, ...] = ()
    sync: SyncIntent | None = None
    inferred: tuple[InferredColumn, ...] | None = Field(None, exclude_if=is_none)
    set_aside: SetAside | None = Field(None, exclude_if=is_none)
    needs: tuple[str, ...] = Field((), exclude_if=is_empty)

    _access = field_validator("access", mode="before")(_dump_part)

    @property
    def load(self) -> str:
        """The value of the objects' load metadata."""
        return f"{self.pipeline}/{self.job_id}/{self.attempt}"

    @property
    def exclusive(self) -> bool:
        """Whether it goes by the table as it was when the load began: a cursor, a counter, the batch before, a sync,
        columns that were inferred."""
        goes_by = (self.cursor_after, self.counter_after, self.batch, self.inferred)
        return any(dependence is not None for dependence in goes_by) or (self.sync is not None and self.sync.exclusive)

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(receipt.rows for receipt in self.receipts)

    def make_report(self, *notes: str, health: TableHealth | None = None) -> TableReport:
        """What the table's report says when this intent is closed."""
        return TableReport(
            pipeline=self.pipeline,
            job_id=self.job_id,
            attempt=self.attempt,
            schema_name=self.schema_name,
            table=self.table,
            started=self.started,
            rows=self.rows,
            files=len(self.receipts),
            bytes=sum(receipt.size for receipt in self.receipts),
            keys=tuple(receipt.key for receipt in self.receipts),
            feed=self.feed,
            engine=", ".join(sorted({receipt.engine for receipt in self.receipts})),
            cursor_before=self.cursor_before,
            cursor_after=self.cursor_after,
            cursor_nulls=sum(receipt.cursor_nulls for receipt in self.receipts),
            staged_seconds=self.staged_seconds,
            small_files=sum(receipt.size < SMALL_FILE_BYTES for receipt in self.receipts),
            notes=(*self.notes, *notes),
            **self._make_sync_fields(),
            health=health,
            set_aside=self.set_aside,
        )

    def _make_sync_fields(self) -> dict[str, Any]:
        undeclared = Counter[str]()
        for receipt in self.receipts:
            undeclared.update(receipt.undeclared)
        samples = [sample for receipt in self.receipts for sample in receipt.change_samples]
        fields: dict[str, Any] = {
            "changes": sum(receipt.changes for receipt in self.receipts),
            "change_samples": tuple(samples[:MOST_SAMPLES]),
            "undeclared": dict(undeclared),
        }
        if self.sync is not None:
            fields |= {"sync_id": self.sync.sync_id, "generation_id": self.sync.generation_id}
            fields["retired"] = len(self.sync.retire)
        return fields

    @classmethod
    def parse(cls, key: str, body: bytes) -> "Intent":
        """The intent in ``body``; one that contradicts itself cannot be recovered."""
        return parse(cls, key, body)
