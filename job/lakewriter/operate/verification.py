"""A committed load, looked at again: its receipts against the objects, the rows in their footers, and the catalog."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lakewriter import aws
from lakewriter.commit.catalog import catalog_writer
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import data_store, reach_from
from lakewriter.commit.iceberg.catalog_vendor import data_clients
from lakewriter.commit.intent import Intent
from lakewriter.commit.presence import load_gone
from lakewriter.encode.parquet_footer import Tail
from lakewriter.errors import CommitUnknownError, PendingUnrecoverableError, SpecInvalidError
from lakewriter.receipt import Receipt
from lakewriter.spec.model import Model

TAIL_BYTES: Final = 64 * 1024
AT_ONCE: Final = 8
PARQUET_ENGINES: Final = ("arro3", "pyarrow")
"""Of other formats' files the size tells whether they are as they were written."""


class Difference(Model):
    """One thing that is not as the load left it; ``key`` is blank for the catalog."""

    table: str
    key: str
    code: str
    message: str


class Verified(Model):
    """A load's tables compared; ``rows`` and ``files`` are what the receipts say."""

    job_id: str
    tables: tuple[str, ...]
    missing: tuple[str, ...]
    rows: int
    files: int
    differences: tuple[Difference, ...]


def verify(controls: Mapping[str, Control], job_id: str, clients: aws.Clients) -> Verified:
    """Everything that differs; ``SPEC_INVALID`` when no table of this pipeline has this load."""
    intents = {}
    for table_id, control in controls.items():
        report = control.report(job_id)
        if report is not None:
            intents[table_id] = control.intent(job_id, report["attempt"])
    if not intents:
        raise SpecInvalidError(f"load {job_id!r} is committed in no table of this pipeline.")
    differences: list[Difference] = []
    for table_id, intent in intents.items():
        differences += _objects(table_id, intent, controls[table_id], clients)
        differences += _catalog(table_id, intent, clients)
    return Verified(
        job_id=job_id,
        tables=tuple(intents),
        missing=tuple(table_id for table_id in controls if table_id not in intents),
        rows=sum(intent.rows for intent in intents.values()),
        files=sum(len(intent.receipts) for intent in intents.values()),
        differences=tuple(differences),
    )


def _objects(table_id: str, intent: Intent, control: Control, clients: aws.Clients) -> list[Difference]:
    store = data_store(control.store, intent.catalog, intent.access, reach_from(clients))
    own = data_clients(intent.catalog, clients)

    def compare(receipt: Receipt) -> Difference | None:
        found = store.find(receipt.key)
        if found is None:
            return _difference(table_id, receipt, "STAGED_LOST", "the object is gone")
        if found.load != intent.load:
            return _difference(table_id, receipt, "KEY_EXISTS", f"it was written by {found.load or 'another writer'!r}")
        if found.size != receipt.size:
            return _difference(table_id, receipt, "KEY_EXISTS", f"it has {found.size} bytes, expected {receipt.size}")
        rows = _rows(receipt, own) if receipt.engine in PARQUET_ENGINES else receipt.rows
        if rows != receipt.rows:
            return _difference(table_id, receipt, "KEY_EXISTS", f"it has {rows} rows, expected {receipt.rows}")
        return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [difference for difference in pool.map(compare, intent.receipts) if difference]


def _rows(receipt: Receipt, clients: aws.Clients) -> int | None:
    """The footer's row count, from the object's last bytes; more of them are asked for when the footer is large."""
    for size in (TAIL_BYTES, receipt.size):
        start = max(0, receipt.size - size)
        try:
            place = {"Bucket": receipt.bucket, "Key": receipt.key}
            body, _ = aws.read_object(clients.s3, **place, Range=f"bytes={start}-")
            tail = Tail()
            tail.write(body)
        except (aws.ClientError, aws.BotoCoreError) as error:
            doing = f"s3:GetObject on s3://{receipt.bucket}/{receipt.key}"
            raise aws.explain(error, doing=doing, access=clients.access) from error
        metadata = tail.metadata()
        if metadata is not None:
            return int(metadata.num_rows)
    return None


def _catalog(table_id: str, intent: Intent, clients: aws.Clients) -> list[Difference]:
    catalog = catalog_writer(intent, clients)
    why = catalog.explain_absence(intent)
    if why is not None:
        error = load_gone(intent, why)
        return [Difference(table=table_id, key="", code=error.code, message=error.message)]
    try:
        catalog.read_back(intent)
    except (CommitUnknownError, PendingUnrecoverableError) as error:
        return [Difference(table=table_id, key="", code=error.code, message=error.message)]
    return []


def _difference(table_id: str, receipt: Receipt, code: str, what: str) -> Difference:
    return Difference(
        table=table_id, key=receipt.key, code=code, message=f"s3://{receipt.bucket}/{receipt.key}: {what}."
    )
