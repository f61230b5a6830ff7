"""Check a load's surroundings: the bucket's lifecycle rules, loads left pending, libraries that sources need."""

import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from lakewriter import aws
from lakewriter.commit.control import Control
from lakewriter.commit.latest import compare_latest, require_followed
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import correct_partitions
from lakewriter.commit.table_objects import describe_left
from lakewriter.control_object import decode
from lakewriter.doctor.probe import Finding, Probe, call, find_cause_code
from lakewriter.errors import (
    KeyExistsError,
    LakeError,
    NameCollisionError,
    PendingUnrecoverableError,
    SpecInvalidError,
    StateLostError,
    TableNotEmptyError,
)
from lakewriter.naming import ControlKeys
from lakewriter.report import format_count, join_first
from lakewriter.run.checks import check_next_load
from lakewriter.run.chosen_files import describe_ways, may_repeat
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Mode, TableSpec

LEAST_DAYS: Final = 16
"""The fewest days before a rule may abort uploads: a load's uploads stay incomplete until it commits, which may take
until the warning at ``MOST_PENDING``."""

MOST_PENDING: Final = timedelta(days=15)

_REFUSALS: Final = (KeyExistsError, NameCollisionError, SpecInvalidError, StateLostError, TableNotEmptyError)
"""What a load ends with that may not write where its table lies."""
_MOST_NAMED: Final = 5
_COMPACTORS: Final = {
    "glue": "Glue",
    "run": "a continuous run",
    "command": "'lakewriter maintain' by a schedule of yours",
    "service": "Amazon S3 Tables",
}
"""Who compacts, by ``maintenance.by``."""
_S3_SCHEMES: Final = ("s3://", "s3a://", "s3n://")
_SAFE_DAYS: Final = 30
_LIFECYCLE_REMEDY: Final = (
    f"Add a lifecycle rule that aborts incomplete multipart uploads after {_SAFE_DAYS} days: what a killed load left "
    "staged is invisible, and is paid for until then."
)


@dataclass(frozen=True)
class LakeProbes:
    """Probes of the pipeline's surroundings; ``now`` is this machine's clock."""

    spec: Spec
    clients: aws.Clients
    keys: ControlKeys
    now: Callable[[], datetime]
    sources: bool = True
    """False where probes of the sources themselves are run."""

    def list_probes(self) -> list[Probe]:
        """List the probes; none needs another of them."""
        return [
            Probe("lifecycle", self.check_lifecycle, ("bucket",)),
            Probe("pending loads", self.check_pending, ("bucket", "list")),
            *([Probe("source files", self.check_sources)] if self.sources else []),
            *([Probe("second loads", self.check_second_loads)] if self._list_repeated() else []),
            *([Probe("merged tables", self.check_merged_tables)] if self._list_merged() else []),
            *(
                Probe("dropped partitions", self.check_partitions, ("bucket", "list"))
                for _ in self._list_dropping()[:1]
            ),
            Probe("places of tables", self.check_places, ("bucket", "list")),
            *(Probe("other writers", self.check_other_writers, ("bucket", "list")) for _ in self._list_counted()[:1]),
            *([Probe("readers", self.check_readers, ("bucket", "list"))] if self._list_refreshed() else []),
        ]

    def check_merged_tables(self) -> Iterator[Finding]:
        """Name the merged tables whose files with deletes nothing removes."""
        names = join_first([table.id for table in self._list_merged()], _MOST_NAMED)
        if self.spec.table_bucket:
            message = f"Amazon S3 Tables compacts {names} by itself, and removes files with deletes."
            yield Finding("merged tables", "ok", message)
            return
        if self.spec.maintenance is not None and self.spec.maintenance.compact:
            who = _COMPACTORS[self.spec.maintenance.by]
            yield Finding("merged tables", "ok", f"{who} compacts {names}, and removes files with deletes.")
            return
        message = f"each merge of {names} leaves files with deletes, which slow readers down and which nothing removes."
        remedy = "Set maintenance: {by: command, compact: true}, and schedule 'lakewriter maintain LAKE'."
        if self.spec.in_glue:
            remedy = f"Set maintenance: {{compact: true, optimizer_role: NAME}}. Or: {remedy}"
        yield Finding("merged tables", "warning", message, remedy)

    def _list_merged(self) -> list[TableSpec]:
        return [table for table in self.spec.tables if table.mode is Mode.MERGE]

    def _list_repeated(self) -> list[TableSpec]:
        """List the tables to which each load appends all rows again; a continuous run reads nothing twice."""
        tables = [] if self.spec.checkpoint else self.spec.tables
        return [table for table in tables if may_repeat(table)]

    def check_second_loads(self) -> Iterator[Finding]:
        """Name the tables to which a second load would append the same rows."""
        tables = self._list_repeated()
        names = join_first([table.id for table in tables], _MOST_NAMED)
        message = f"each load appends all rows of {names} again."
        yield Finding("second loads", "warning", message, f"{describe_ways(tables[0])} Or allow it: repeated: allow.")

    def _list_dropping(self) -> list[TableSpec]:
        """List the tables in whose Glue tables an undo drops partitions."""
        is_partitioned = self.spec.catalog.partition_key is not None
        return list(self.spec.tables) if is_partitioned and self.spec.undo.drop_partitions else []

    def check_partitions(self) -> Iterator[Finding]:
        """Correct the partitions that calls of processes that were held up have changed after later changes."""
        pipeline, corrected = Pipeline.open(self.spec, self.clients), list[str]()
        for table in self._list_dropping():
            control = pipeline.controls[table.id]
            if control.state.read().partitions:
                corrected += correct_partitions(control, pipeline.open_clients)
        if corrected:
            yield Finding("dropped partitions", "warning", f"{'; '.join(corrected)}.", "Queries may have missed rows.")
        else:
            yield Finding("dropped partitions", "ok", "Glue's partitions are as the last loads and undos left them.")

    def check_places(self) -> Iterator[Finding]:
        """Find what the next load of a table would refuse before it reads its source."""
        controls, refused = Pipeline.open(self.spec, self.clients).controls, False
        for table in self.spec.tables:
            try:
                self._require_place(table, controls[table.id])
            except _REFUSALS as error:
                refused = True
                yield Finding(f"place of {table.id}", "failed", error.message, error.remedy, error.code)
        if not refused:
            yield Finding("places of tables", "ok", "no load is refused for what lies where its table is.")

    def _require_place(self, table: TableSpec, control: Control) -> None:
        names = table.layout.bind(job_id="check", attempt="check", start=self.now(), sync_id=0, table=table.id)
        try:
            state = control.state.read()
        except LakeError:
            # Access and lost states have probes of their own.
            return
        try:
            check_next_load(self.spec, table, control, state, names, self.clients)
        except _REFUSALS:
            raise
        except LakeError:
            # Access and catalogs have probes of their own.
            return

    def _list_counted(self) -> list[TableSpec]:
        """List the tables whose files are numbered: no load may take a number that another writer has used."""
        return [table for table in self.spec.tables if "counter" in table.layout.template.variables]

    def check_other_writers(self) -> Iterator[Finding]:
        """Find files that another writer has left at the keys of the next loads."""
        controls, left = Pipeline.open(self.spec, self.clients).controls, list[str]()
        for table in self._list_counted():
            control = controls[table.id]
            state = control.state.read()
            # A table that was never loaded has no place of its own there: its load is refused.
            if state.committed and state.pending is None:
                backfill = max(state.backfill, table.backfill or 0)
                left.append(describe_left(control.store, table.layout, backfill, state.counter))
        if described := list(filter(None, left)):
            remedy = "Go on from there: lakewriter adopt LAKE. Until then a load may end with KEY_EXISTS."
            yield Finding("other writers", "warning", f"{'; '.join(described)}.", remedy)
        else:
            yield Finding("other writers", "ok", "the numbers of the next files are free.")

    def _list_refreshed(self) -> list[TableSpec]:
        """List the tables whose files an object names."""
        return [table for table in self.spec.tables if table.latest is not None]

    def check_readers(self) -> Iterator[Finding]:
        """Compare the objects that name the files of full refreshes with the states of their tables."""
        controls, changed = Pipeline.open(self.spec, self.clients).controls, list[str]()
        for table in self._list_refreshed():
            control = controls[table.id]
            state = control.state.read()
            try:
                require_followed(control, state, shares=self.spec.shares_tables)
            except StateLostError as error:
                yield Finding("readers", "failed", error.message, error.remedy, error.code)
                return
            changed += [mismatch.message for mismatch in compare_latest(control, state)]
        if changed:
            yield Finding("readers", "warning", " ".join(changed), "The next load writes each of them again.")
        else:
            yield Finding("readers", "ok", "the objects that name a table's files name those of its last refresh.")

    def check_lifecycle(self) -> Iterator[Finding]:
        """Read the lifecycle rules; loads do not need s3:GetLifecycleConfiguration, so a denial is no failure."""
        doing = f"s3:GetLifecycleConfiguration on {self.spec.access.bucket}"
        request = self.clients.s3.get_bucket_lifecycle_configuration
        try:
            answer = call(doing, self.spec.access, lambda: request(Bucket=self.spec.access.bucket))
        except LakeError as error:
            if find_cause_code(error) != "NoSuchLifecycleConfiguration":
                yield Finding("lifecycle", "skipped", error.message, _LIFECYCLE_REMEDY)
                return
            answer = {}
        # SeaweedFS and rclone omit the list if there is no rule.
        orphans = self.spec.maintenance.delete_orphans_days if self.spec.maintenance else None
        yield _check_rules(answer.get("Rules", []), self.keys.root, orphans)

    def check_pending(self) -> Iterator[Finding]:
        """Find loads that have begun to commit and were not finished."""
        old = []
        for key in self._list_states():
            since = self._read_pending_since(key)
            if since is not None and self.now() - since > MOST_PENDING:
                old.append(f"{key.removeprefix(self.keys.root + '/tables/').removesuffix('/state.json')} since {since}")
        if not old:
            yield Finding("pending loads", "ok", f"no load has been pending for {MOST_PENDING.days} days.")
            return
        remedy = "Run the pipeline, which finishes it first; if that fails, run `lakewriter abandon` for that load."
        yield Finding("pending loads", "warning", f"a load is pending and not finished: {'; '.join(old)}.", remedy)

    def check_sources(self) -> Iterator[Finding]:
        """Check for hadoop-aws, through which Spark reads S3: EMR has it, PySpark from PyPI does not."""
        tables = [
            table.id
            for table in self.spec.tables
            if any(is_in_s3(path) for read in table.read.leaves for path in read.paths) and _is_read_by_spark(table)
        ]
        if not tables or has_hadoop_aws():
            yield Finding("source files", "ok", "no source needs a library that is missing here.")
            return
        message = f"Spark reads the files of {', '.join(tables)} from S3, and there is no hadoop-aws library here."
        remedy = "On EMR do nothing. Elsewhere, add hadoop-aws of Spark's Hadoop version to spark.jars.packages."
        yield Finding("source files", "warning", message, remedy)

    def _list_states(self) -> list[str]:
        prefix = f"{self.keys.root}/tables/"
        pages = self.clients.s3.get_paginator("list_objects_v2")
        doing = f"s3:ListBucket on s3://{self.spec.access.bucket}/{prefix}"
        listed = call(
            doing, self.spec.access, lambda: list(pages.paginate(Bucket=self.spec.access.bucket, Prefix=prefix))
        )
        keys = [entry["Key"] for page in listed for entry in page.get("Contents", ())]
        return [key for key in keys if key.endswith("/state.json")]

    def _read_pending_since(self, key: str) -> datetime | None:
        doing = f"s3:GetObject on s3://{self.spec.access.bucket}/{key}"
        request = self.clients.s3.get_object
        body = call(doing, self.spec.access, lambda: request(Bucket=self.spec.access.bucket, Key=key)["Body"].read())
        try:
            pending = decode(key, body).get("pending")
            return datetime.fromisoformat(pending["since"]).astimezone(UTC) if pending is not None else None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise PendingUnrecoverableError(
                f"{key} is not the state of a table ({type(error).__name__}: {error}).",
                remedy="Restore the object from its bucket's versions.",
            ) from error


def _check_rules(rules: list[Mapping[str, Any]], root: str, orphans: int | None) -> Finding:
    """Check the enabled rules that cover the control prefix, which begins with the data's prefix; ``orphans`` are the
    days of ``maintenance.delete_orphans_days``."""
    days = [
        rule["AbortIncompleteMultipartUpload"]["DaysAfterInitiation"]
        for rule in rules
        if rule["Status"] == "Enabled"
        and "AbortIncompleteMultipartUpload" in rule
        and root.startswith(_read_prefix(rule))
    ]
    if not days:
        message = "no lifecycle rule aborts incomplete multipart uploads."
        return Finding("lifecycle", "warning", message, _LIFECYCLE_REMEDY)
    waits = format_count(min(days), "day")
    if min(days) < LEAST_DAYS:
        message = f"a lifecycle rule aborts incomplete multipart uploads after {waits}: a load could lose its files."
        remedy = f"Let the rule wait at least {LEAST_DAYS} days, better {_SAFE_DAYS}."
        return Finding("lifecycle", "warning", message, remedy)
    if orphans is not None and orphans <= min(days):
        message = (
            f"maintenance.delete_orphans_days is {orphans}, and uploads may be completed for {waits}: files could be "
            "deleted that a load is about to commit."
        )
        return Finding("lifecycle", "warning", message, f"Set it to {min(days) + 1} or more.")
    return Finding("lifecycle", "ok", f"incomplete multipart uploads are aborted after {waits}.")


def _read_prefix(rule: Mapping[str, Any]) -> str:
    where = rule.get("Filter", {})
    return str(rule.get("Prefix") or where.get("Prefix") or where.get("And", {}).get("Prefix") or "")


def is_in_s3(path: str) -> bool:
    """Return True for a path that Spark reads through hadoop-aws."""
    return path.lower().startswith(_S3_SCHEMES)


def _is_read_by_spark(table: TableSpec) -> bool:
    """Return True unless it is a plain Parquet scan, which our tasks read without Spark's readers."""
    return table.read.kind.name != "parquet" or bool(
        table.read.sql or table.read.columns or table.deleted or table.cursor
    )


def has_hadoop_aws() -> bool:
    """Look in the jar folders of Spark and PySpark, without starting Spark."""
    pyspark = importlib.util.find_spec("pyspark")
    homes = [os.environ.get("SPARK_HOME"), str(Path(pyspark.origin).parent) if pyspark and pyspark.origin else None]
    return any(next(Path(home, "jars").glob("hadoop-aws*.jar"), None) is not None for home in homes if home)
