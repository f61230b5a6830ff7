"""Check the job's permissions in Glue without creating anything there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from lakewriter import aws
from lakewriter.commit.glue_table import check_layout
from lakewriter.doctor.probe import Finding, Probe, call, find_cause_code
from lakewriter.errors import GlueAccessDeniedError, LakeError
from lakewriter.naming import CHECK_TABLE
from lakewriter.run.placement import plan_glue_action
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_MISSING: Final = "EntityNotFoundException"
_PAST_THE_POLICY: Final = {"AlreadyExistsException", "InvalidInputException", "ValidationException"}
_NEW_DATABASE: Final = "glue:CreateDatabase cannot be tried without creating it."
_NEW_TABLE: Final = "glue:CreateTable cannot be tried without creating one."


@dataclass(frozen=True)
class CatalogProbes:
    """Probes of each database and table of a spec; ``gate`` is the probe of the credentials.

    Writes are tried on a table that does not exist: Glue checks the permission before it looks for the table.
    """

    spec: Spec
    clients: aws.Clients
    mark: str
    gate: str

    def list_probes(self) -> list[Probe]:
        """List the probes; none without a Glue catalog."""
        if not self.spec.in_glue:
            return []
        databases = dict.fromkeys(table.schema_name for table in self.spec.tables)
        probes = []
        for name in databases:
            probes.append(Probe(f"glue database {name}", partial(self.check_database, name), (self.gate,)))
            probes.append(Probe(f"glue write {name}", partial(self.check_write, name), (self.gate,)))
        tables = [
            Probe(f"glue table {table.id}", partial(self.check_table, table), (self.gate,))
            for table in self.spec.tables
        ]
        return probes + tables

    def check_database(self, name: str) -> Iterator[Finding]:
        """Call glue:GetDatabase."""
        database = self._call_glue("GetDatabase", self.clients.glue.get_database, name, Name=name)
        message = "exists" if database else f"does not exist yet; the first load creates it ({_NEW_DATABASE})"
        yield Finding(f"glue database {name}", "ok", f"database {name!r} {message.rstrip('.')}.")

    def check_table(self, table: TableSpec) -> Iterator[Finding]:
        """Call glue:GetTable, and compare an existing table's layout with that of the next load, as the load does."""
        named = {"DatabaseName": table.schema_name, "Name": table.name}
        existing = self._call_glue("GetTable", self.clients.glue.get_table, table.id, **named)
        names = table.layout.bind(job_id=self.mark, attempt=self.mark, start=datetime.now(UTC))
        if existing and not self.spec.iceberg:
            check_layout(existing["Table"], plan_glue_action(self.spec, table, names))
        message = "exists" if existing else "does not exist yet; the first load creates it"
        yield Finding(f"glue table {table.id}", "ok", f"table {table.id!r} {message}.")

    def check_write(self, name: str) -> Iterator[Finding]:
        """Try every write that the job makes, and report all denials at once: a policy may lack several."""
        untried = "" if self._may_try_create_table(name) else f"; {_NEW_TABLE}"
        denied: list[GlueAccessDeniedError] = []
        for action, request, arguments in self._list_writes(name):
            try:
                self._call_glue(action, request, f"{name}.{self._absent_table}", **arguments)
            except GlueAccessDeniedError as error:
                if find_cause_code(error) not in _PAST_THE_POLICY:
                    denied.append(error)
        if denied:
            said = " ".join(error.message for error in denied)
            raise GlueAccessDeniedError(said, remedy=denied[0].remedy) from denied[0]
        yield Finding(f"glue write {name}", "ok", f"tables and partitions of {name!r} can be written{untried}")

    @property
    def _absent_table(self) -> str:
        return f"{CHECK_TABLE}{self.mark}"

    def _may_try_create_table(self, name: str) -> bool:
        """Return True if the database does not exist: then glue:CreateTable fails without creating a table."""
        try:
            return self._call_glue("GetDatabase", self.clients.glue.get_database, name, Name=name) is None
        except LakeError:
            return False

    def _list_writes(self, name: str) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
        glue, table = self.clients.glue, {"Name": self._absent_table}
        there = {"DatabaseName": name, "TableName": self._absent_table}
        if self._may_try_create_table(name):
            yield "CreateTable", glue.create_table, {"DatabaseName": name, "TableInput": table}
        yield "UpdateTable", glue.update_table, {"DatabaseName": name, "TableInput": table}
        if self.spec.iceberg:
            return
        yield "GetPartition", glue.get_partition, {**there, "PartitionValues": [self.mark]}
        partition = {"Values": [self.mark]}
        yield "BatchCreatePartition", glue.batch_create_partition, {**there, "PartitionInputList": [partition]}

    def _call_glue(self, action: str, request: Callable[..., Any], on: str, **arguments: Any) -> Any:
        """Call Glue and return its response; None if the database, table or partition does not exist."""
        try:
            return call(f"glue:{action} on {on}", self.spec.access, partial(request, **arguments))
        except LakeError as error:
            if find_cause_code(error) != _MISSING:
                raise
            return None
