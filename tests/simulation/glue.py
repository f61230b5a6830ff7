"""The Glue Data Catalog: databases, versioned tables, partitions; and a process's client of it."""

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.simulation.weather import Network, refused


class EntityNotFoundException(ClientError):  # noqa: N818 - Glue's own names
    """See Glue."""


class AlreadyExistsException(ClientError):  # noqa: N818
    """See Glue."""


class ConcurrentModificationException(ClientError):  # noqa: N818
    """See Glue."""


class InvalidInputException(ClientError):  # noqa: N818
    """See Glue."""


EXCEPTIONS: Final = {
    kind.__name__: kind
    for kind in (
        EntityNotFoundException,
        AlreadyExistsException,
        ConcurrentModificationException,
        InvalidInputException,
    )
}


def _refused(operation: str, code: str) -> ClientError:
    answer = refused(operation, 400, code).response
    return EXCEPTIONS[code](answer, operation)


@dataclass
class Table:
    """A table as it is now, the number of its version, and its partitions by value."""

    content: dict[str, Any]
    version: int = 0
    partitions: dict[str, dict[str, Any]] = field(default_factory=dict)


class Catalog:
    """What all clients share. ``watch`` is told the table's name after every change."""

    def __init__(self) -> None:
        self.databases: dict[str, dict[str, Any]] = {}
        self.tables: dict[tuple[str, str], Table] = {}
        self.watch: Callable[[tuple[str, str]], None] = lambda _: None

    def update(self, name: tuple[str, str], content: Mapping[str, Any]) -> None:
        """The next version of a table."""
        table = self.tables[name]
        table.content, table.version = dict(copy.deepcopy(content)), table.version + 1
        self.watch(name)


class Glue:
    """A process's client."""

    def __init__(self, catalog: Catalog, network: Network, requests: Counter[str]) -> None:
        self._catalog, self._network, self._requests = catalog, network, requests
        self.exceptions = SimpleNamespace(**EXCEPTIONS)

    def _call(self, operation: str, what: str, apply: Callable[[], Any]) -> Any:
        return self._network.call(operation, what, apply, self._count)

    def _count(self, _: str) -> None:
        self._requests["POST"] += 1

    def get_database(self, *, Name: str) -> Any:  # noqa: N803
        """See Glue."""

        def apply() -> Any:
            if Name not in self._catalog.databases:
                raise _refused("GetDatabase", "EntityNotFoundException")
            return {"Database": dict(self._catalog.databases[Name])}

        return self._call("GetDatabase", Name, apply)

    def create_database(self, *, DatabaseInput: Mapping[str, Any]) -> Any:  # noqa: N803
        """See Glue."""

        def apply() -> Any:
            if DatabaseInput["Name"] in self._catalog.databases:
                raise _refused("CreateDatabase", "AlreadyExistsException")
            self._catalog.databases[DatabaseInput["Name"]] = dict(DatabaseInput)
            return {}

        return self._call("CreateDatabase", DatabaseInput["Name"], apply)

    def get_table(self, *, DatabaseName: str, Name: str) -> Any:  # noqa: N803
        """With the version it is now."""

        def apply() -> Any:
            table = self._catalog.tables.get((DatabaseName, Name))
            if table is None:
                raise _refused("GetTable", "EntityNotFoundException")
            shown = copy.deepcopy(table.content)
            return {"Table": shown | {"DatabaseName": DatabaseName, "VersionId": str(table.version)}}

        return self._call("GetTable", f"{DatabaseName}.{Name}", apply)

    def get_paginator(self, operation: str) -> Any:
        """Of the tables of a database."""
        assert operation == "get_tables"

        def paginate(*, DatabaseName: str) -> Any:  # noqa: N803
            def apply() -> Any:
                tables = self._catalog.tables.items()
                shown = [
                    table.content | {"Name": name} for (database, name), table in tables if database == DatabaseName
                ]
                return {"TableList": copy.deepcopy(shown)}

            return [self._call("GetTables", DatabaseName, apply)]

        return SimpleNamespace(paginate=paginate)

    def create_table(self, *, DatabaseName: str, TableInput: Mapping[str, Any]) -> Any:  # noqa: N803
        """See Glue."""
        name = (DatabaseName, TableInput["Name"])

        def apply() -> Any:
            if DatabaseName not in self._catalog.databases:
                raise _refused("CreateTable", "EntityNotFoundException")
            if name in self._catalog.tables:
                raise _refused("CreateTable", "AlreadyExistsException")
            self._catalog.tables[name] = Table(dict(copy.deepcopy(TableInput)))
            self._catalog.watch(name)
            return {}

        return self._call("CreateTable", ".".join(name), apply)

    def update_table(
        self,
        *,
        DatabaseName: str,  # noqa: N803
        TableInput: Mapping[str, Any],  # noqa: N803
        VersionId: str | None = None,  # noqa: N803
        SkipArchive: bool = False,  # noqa: N803
    ) -> Any:
        """On the version named, if one is."""
        name = (DatabaseName, TableInput["Name"])

        def apply() -> Any:
            table = self._catalog.tables.get(name)
            if table is None:
                raise _refused("UpdateTable", "EntityNotFoundException")
            if VersionId is not None and VersionId != str(table.version):
                raise _refused("UpdateTable", "ConcurrentModificationException")
            self._catalog.update(name, TableInput)
            return {}

        return self._call("UpdateTable", f"{'.'.join(name)} {VersionId}", apply)

    def get_partition(self, *, DatabaseName: str, TableName: str, PartitionValues: list[str]) -> Any:  # noqa: N803
        """See Glue."""

        def apply() -> Any:
            table = self._catalog.tables.get((DatabaseName, TableName))
            found = table and table.partitions.get(PartitionValues[0])
            if not found:
                raise _refused("GetPartition", "EntityNotFoundException")
            return {"Partition": copy.deepcopy(found)}

        return self._call("GetPartition", PartitionValues[0], apply)

    def delete_partition(self, *, DatabaseName: str, TableName: str, PartitionValues: list[str]) -> Any:  # noqa: N803
        """See Glue."""

        def apply() -> Any:
            table = self._catalog.tables.get((DatabaseName, TableName))
            if table is None or PartitionValues[0] not in table.partitions:
                raise _refused("DeletePartition", "EntityNotFoundException")
            del table.partitions[PartitionValues[0]]
            self._catalog.watch((DatabaseName, TableName))
            return {}

        return self._call("DeletePartition", PartitionValues[0], apply)

    def get_partitions(self, *, DatabaseName: str, TableName: str, **_: bool) -> Any:  # noqa: N803
        """All in one page."""

        def apply() -> Any:
            table = self._catalog.tables.get((DatabaseName, TableName))
            if table is None:
                raise _refused("GetPartitions", "EntityNotFoundException")
            return {"Partitions": copy.deepcopy(list(table.partitions.values()))}

        return self._call("GetPartitions", TableName, apply)

    def batch_create_partition(
        self,
        *,
        DatabaseName: str,  # noqa: N803
        TableName: str,  # noqa: N803
        PartitionInputList: list[dict[str, Any]],  # noqa: N803
    ) -> Any:
        """One that is there is told among the errors."""

        def apply() -> Any:
            table = self._catalog.tables.get((DatabaseName, TableName))
            if table is None:
                raise _refused("BatchCreatePartition", "EntityNotFoundException")
            errors = []
            for given in PartitionInputList:
                if given["Values"][0] in table.partitions:
                    detail = {"ErrorCode": "AlreadyExistsException", "ErrorMessage": "it is there"}
                    errors.append({"PartitionValues": given["Values"], "ErrorDetail": detail})
                    continue
                table.partitions[given["Values"][0]] = copy.deepcopy(given)
            self._catalog.watch((DatabaseName, TableName))
            return {"Errors": errors} if errors else {}

        return self._call("BatchCreatePartition", PartitionInputList[0]["Values"][0], apply)
