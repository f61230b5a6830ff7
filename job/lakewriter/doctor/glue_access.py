"""Whether the job may do in Glue what it has to, asked without leaving anything there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lakewriter import aws
from lakewriter.aws.answers import GLUE_REMEDY
from lakewriter.doctor.probe import Finding, Probe, call, code_behind
from lakewriter.errors import GlueAccessDeniedError, LakeError
from lakewriter.naming import CHECK_TABLE
from lakewriter.spec.specification import Spec, TableSpec

_MISSING: Final = "EntityNotFoundException"
_PAST_THE_POLICY: Final = {"AlreadyExistsException", "InvalidInputException", "ValidationException"}
_NEW_DATABASE: Final = "glue:CreateDatabase cannot be tried without creating it."
_NEW_TABLE: Final = "glue:CreateTable cannot be tried without creating one."


@dataclass(frozen=True)
class CatalogProbes:
    """Probes of each database and table of a spec; ``gate`` is the probe that credentials depend on.

    Writing is tried on tables that do not exist: whoever may write is told so, whoever may not is denied first.
    """

    spec: Spec
    clients: aws.Clients
    mark: str
    gate: str

    def probes(self) -> list[Probe]:
        """None when the spec has no Glue catalog."""
        if not self.spec.in_glue:
            return []
        databases = dict.fromkeys(table.schema_name for table in self.spec.tables)
        probes = []
        for name in databases:
            probes.append(Probe(f"glue database {name}", partial(self.database, name), (self.gate,)))
            probes.append(Probe(f"glue write {name}", partial(self.write, name), (self.gate,)))
        tables = [
            Probe(f"glue table {table.id}", partial(self.table, table), (self.gate,)) for table in self.spec.tables
        ]
        return probes + tables

    def database(self, name: str) -> Iterator[Finding]:
        """glue:GetDatabase."""
        found = self._ask("GetDatabase", self.clients.glue.get_database, name, Name=name)
        message = "exists" if found else f"does not exist yet; the first load creates it ({_NEW_DATABASE})"
        yield Finding(f"glue database {name}", "ok", f"database {name!r} {message.rstrip('.')}.")

    def table(self, table: TableSpec) -> Iterator[Finding]:
        """glue:GetTable."""
        named = {"DatabaseName": table.schema_name, "Name": table.name}
        found = self._ask("GetTable", self.clients.glue.get_table, table.id, **named)
        message = "exists" if found else "does not exist yet; the first load creates it"
        yield Finding(f"glue table {table.id}", "ok", f"table {table.id!r} {message}.")

    def write(self, name: str) -> Iterator[Finding]:
        """Every write the job makes, all of them asked: one policy may lack several."""
        untried = "" if self._without_effect(name) else f"; {_NEW_TABLE}"
        denied: list[GlueAccessDeniedError] = []
        for action, request, arguments in self._writes(name):
            try:
                self._ask(action, request, f"{name}.{self._nowhere}", **arguments)
            except GlueAccessDeniedError as error:
                if code_behind(error) not in _PAST_THE_POLICY:
                    denied.append(error)
        if denied:
            raise GlueAccessDeniedError(" ".join(error.message for error in denied), remedy=GLUE_REMEDY) from denied[0]
        yield Finding(f"glue write {name}", "ok", f"tables and partitions of {name!r} can be written{untried}")

    @property
    def _nowhere(self) -> str:
        return f"{CHECK_TABLE}{self.mark}"

    def _without_effect(self, name: str) -> bool:
        """A table can only be refused to be created where there is no database for it."""
        try:
            return self._ask("GetDatabase", self.clients.glue.get_database, name, Name=name) is None
        except LakeError:
            return False

    def _writes(self, name: str) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
        glue, table = self.clients.glue, {"Name": self._nowhere}
        there = {"DatabaseName": name, "TableName": self._nowhere}
        if self._without_effect(name):
            yield "CreateTable", glue.create_table, {"DatabaseName": name, "TableInput": table}
        yield "UpdateTable", glue.update_table, {"DatabaseName": name, "TableInput": table}
        if self.spec.iceberg:
            return
        yield "GetPartition", glue.get_partition, {**there, "PartitionValues": [self.mark]}
        partition = {"Values": [self.mark]}
        yield "BatchCreatePartition", glue.batch_create_partition, {**there, "PartitionInputList": [partition]}

    def _ask(self, action: str, request: Callable[..., Any], on: str, **arguments: Any) -> Any:
        """The answer, or None when Glue knows no such thing."""
        try:
            return call(f"glue:{action} on {on}", self.spec.access, partial(request, **arguments))
        except LakeError as error:
            if code_behind(error) != _MISSING:
                raise
            return None
