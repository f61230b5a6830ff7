"""What the Glue Data Catalog does and moto does not."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from moto.glue.models import glue_backends

from tests.support.call import ACCOUNT, Answer, Call

Proceed = Callable[[Call], Answer]

# https://docs.aws.amazon.com/glue/latest/webapi/API_BatchCreatePartition.html and its kin
_LIST_LIMITS: Final = {
    "glue:BatchCreatePartition": ("PartitionInputList", 100),
    "glue:BatchDeletePartition": ("PartitionsToDelete", 25),
    "glue:BatchGetPartition": ("PartitionsToGet", 1000),
    "glue:BatchUpdatePartition": ("Entries", 100),
    "glue:BatchDeleteTable": ("TablesToDelete", 100),
}


def fold_names(call: Call, proceed: Proceed) -> Answer:
    """Database, table and column names are stored in lower case."""
    if call.service != "glue":
        return proceed(call)
    document = {name: _folded(name, value) for name, value in call.document.items()}
    return proceed(replace(call, document=document, body=json.dumps(document).encode()))


def _folded(name: str, value: Any) -> Any:
    if name in {"Name", "DatabaseName", "TableName"}:
        return value.lower()
    if name == "DatabaseInput":
        return {**value, "Name": value["Name"].lower()}
    if name != "TableInput":
        return value
    table = {**value, "Name": value["Name"].lower()}
    if "PartitionKeys" in table:
        table["PartitionKeys"] = _folded_columns(table["PartitionKeys"])
    if "Columns" in table.get("StorageDescriptor", {}):
        columns = _folded_columns(table["StorageDescriptor"]["Columns"])
        table["StorageDescriptor"] = {**table["StorageDescriptor"], "Columns": columns}
    return table


def _folded_columns(columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**column, "Name": column["Name"].lower()} for column in columns]


def check_versions(call: Call, proceed: Proceed) -> Answer:
    """``UpdateTable`` that names a version works on that version only."""
    wanted = call.document.get("VersionId")
    if call.action != "glue:UpdateTable" or wanted is None:
        return proceed(call)
    databases = glue_backends[ACCOUNT][call.region].databases
    database = databases.get(call.document["DatabaseName"])
    table = database.tables.get(call.document["TableInput"]["Name"]) if database else None
    if table is not None and table.as_dict()["VersionId"] != str(wanted):
        message = "Update table failed due to concurrent modifications."
        return call.error(400, "ConcurrentModificationException", message)
    return proceed(call)


def limit_lists(call: Call, proceed: Proceed) -> Answer:
    """Batches have a greatest length."""
    name, most = _LIST_LIMITS.get(call.action, ("", 0))
    given = len(call.document.get(name, []))
    if given <= most:
        return proceed(call)
    message = (
        f"1 validation error detected: Value at '{name[:1].lower()}{name[1:]}' failed to satisfy constraint: "
        f"Member must have length less than or equal to {most}"
    )
    return call.error(400, "ValidationException", message)


def get_catalog(call: Call, proceed: Proceed) -> Answer:
    """``GetCatalog`` of the account's own catalog, which moto does not have."""
    if call.action != "glue:GetCatalog":
        return proceed(call)
    return _answer({"Catalog": {"CatalogId": call.document["CatalogId"], "Name": "default"}})


class Optimizers:
    """Optimizers of Iceberg tables, which moto does not have: ``kept`` by table and type, as they were given.

    https://docs.aws.amazon.com/glue/latest/webapi/API_CreateTableOptimizer.html and its kin
    """

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.last_runs: dict[tuple[str, str], dict[str, Any]] = {}

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        verb = call.action.removeprefix("glue:").removesuffix("TableOptimizer")
        if verb not in {"Create", "Get", "Update", "Delete"}:
            return proceed(call)
        key = f"{call.document['DatabaseName']}.{call.document['TableName']}", call.document["Type"]
        if (verb == "Create") == (key in self.kept):
            code = "AlreadyExistsException" if verb == "Create" else "EntityNotFoundException"
            return call.error(400, code, f"Optimizer {key[1]} of {key[0]}")
        if verb == "Get":
            found = {"type": key[1], "configuration": self.kept[key], "lastRun": self.last_runs.get(key, {})}
            return _answer({"TableOptimizer": found})
        if verb == "Delete":
            del self.kept[key]
        else:
            self.kept[key] = call.document["TableOptimizerConfiguration"]
        return _answer({})


def _answer(content: dict[str, Any]) -> Answer:
    return Answer(200, (("Content-Type", "application/x-amz-json-1.1"),)).with_body(json.dumps(content).encode())
