"""Find objects in an Iceberg table's folders that nothing names: no metadata, no intent, no other table.

The library has no such search. Whatever may be another's is left, and so is all of a table whose folder has metadata of
another one: what that table has cannot be told.
"""

import gzip
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pyiceberg.table import Table, TableProperties

from lakewriter import aws
from lakewriter.commit.at_once import call_all
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.iceberg.catalog_errors import explain_errors
from lakewriter.commit.iceberg.catalog_vendor import make_data_clients
from lakewriter.commit.iceberg.expire_snapshots import require_deletable_files
from lakewriter.commit.iceberg.file_io import split
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable, is_within, list_folders, list_metadata_files
from lakewriter.commit.iceberg.manifests import read_live_entries
from lakewriter.commit.iceberg.schema_evolution import open_changeable
from lakewriter.commit.store import Entry
from lakewriter.errors import SpecInvalidError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.state import TableState

_HINT: Final = "version-hint.text"
"""The file by which tables without a catalog are found, https://iceberg.apache.org/spec/#file-system-tables."""
_METADATA: Final = (".metadata.json", ".metadata.json.gz")

Locations = dict[str, tuple[str, ...]]
"""The folders of the tables of a namespace, without their scheme, by the tables' names."""


@dataclass(frozen=True)
class Orphans:
    """Objects that nothing names. ``others`` is the number of those left that lie in folders of other tables, or of
    what the file reads and writes beside."""

    entries: tuple[Entry, ...] = ()
    others: int = 0

    @property
    def bytes(self) -> int:
        """Their size."""
        return sum(entry.size for entry in self.entries)


def list_locations(action: IcebergAction, clients: aws.Clients) -> Locations:
    """List the folders of the tables in an action's namespace: in Glue of those of other formats, too."""
    service, namespace = action.service, action.namespace
    with explain_errors(service, clients, f"list the tables of {namespace}"):
        if service.in_glue:
            pages = clients.glue.get_paginator("get_tables").paginate(DatabaseName=namespace)
            tables = [table for page in pages for table in page["TableList"]]
            return {table["Name"]: tuple(_list_of_glue(table)) for table in tables}
        catalog = open_catalog(service, make_data_clients(action, clients), "maintain/orphans/list", [])
        names = [name for _, name in catalog.list_tables(namespace)]
        return dict(
            zip(names, call_all(lambda name: list_folders(catalog.load_table((namespace, name))), names), strict=True)
        )


def _list_of_glue(table: dict[str, object]) -> Iterator[str]:
    storage, parameters = table.get("StorageDescriptor") or {}, table.get("Parameters") or {}
    assert isinstance(storage, dict)
    assert isinstance(parameters, dict)
    if location := storage.get("Location"):
        yield f"{location.partition('://')[2].rstrip('/')}/"
    if metadata := parameters.get("metadata_location"):
        yield f"{metadata.partition('://')[2].rpartition('/')[0]}/"


def find_orphans(
    action: IcebergAction,
    clients: aws.Clients,
    pipeline: str,
    read_state: Callable[[], TableState],
    before: datetime,
    beside: Collection[str],
    list_named: Callable[[], Iterable[str]],
) -> Orphans | None:
    """Find the objects in a table's folders that are older than ``before`` and that nothing names; None without it.

    ``beside`` are folders of others, without their scheme, some of which may lie within the table's. ``list_named``
    lists the locations that pending intents name. ``SPEC_INVALID`` where another table's metadata lie among its own.
    """
    opened = open_changeable(action, clients, f"{pipeline}/orphans/orphans", read_state)
    if opened is None:
        return None
    table, present = opened
    require_deletable_files(table)
    data_clients = make_data_clients(present, clients)
    store, bucket = S3Store(data_clients), data_clients.access.bucket
    folders = [folder for folder in list_folders(table) if folder.partition("/")[0] == bucket]
    listed = [entry for folder in folders for entry in store.list_entries(folder.partition("/")[2])]
    # What was committed while the objects were listed is known as well.
    current = IcebergTable(present, clients, f"{pipeline}/orphans/orphans").load()
    table = table if current is None else current
    named = {_to_path(location) for location in (*_list_known(table), *list_named())}
    unknown = [
        entry
        for entry in listed
        if f"{bucket}/{entry.key}" not in named and is_within(table, f"s3://{bucket}/{entry.key}")
    ]
    metadata_folder = _find_metadata_folder(table)
    metadata = [f"{bucket}/{entry.key}" for entry in unknown if entry.key.endswith(_METADATA)]
    foreign = tuple({_find_root(path) for path in metadata if path.rpartition("/")[0] + "/" != metadata_folder})
    # A folder that the table lies in itself is no other's within it.
    within = tuple(folder for folder in (*beside, *foreign) if not any(mine.startswith(folder) for mine in folders))
    _require_alone(table, store, [path for path in metadata if path.rpartition("/")[0] + "/" == metadata_folder])
    old = [entry for entry in unknown if entry.modified < before and not entry.key.endswith(("/", _HINT))]
    mine = [entry for entry in old if not f"{bucket}/{entry.key}".startswith(within)]
    return Orphans(tuple(mine), len(old) - len(mine))


def delete_orphans(action: IcebergAction, clients: aws.Clients, orphans: Orphans) -> None:
    """Delete objects that nothing names."""
    S3Store(make_data_clients(action, clients)).delete_all([entry.key for entry in orphans.entries])


def _to_path(location: str) -> str:
    return "/".join(split(location))


def _list_known(table: Table) -> Iterator[str]:
    """Yield the locations of all files that the table's metadata name."""
    metadata, manifests = table.metadata, set[str]()
    yield from list_metadata_files(table)
    yield from (file.statistics_path for file in (*metadata.statistics, *metadata.partition_statistics))
    for snapshot in metadata.snapshots:
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in manifests:
                manifests.add(manifest.manifest_path)
                yield manifest.manifest_path
                # Rule orphans-of-all-snapshots
                yield from (entry.path for entry in read_live_entries(manifest, table.io))


def _find_metadata_folder(table: Table) -> str:
    given = table.properties.get(TableProperties.WRITE_METADATA_PATH) or f"{table.location().rstrip('/')}/metadata"
    return f"{given.partition('://')[2].rstrip('/')}/"


def _find_root(path: str) -> str:
    """Return the folder of the table whose metadata file lies at a path."""
    return f"{path.rpartition('/')[0].removesuffix('/metadata')}/"


def _require_alone(table: Table, store: S3Store, paths: Iterable[str]) -> None:
    """Raise ``SPEC_INVALID`` where metadata files among the table's own are another table's."""
    uuid = str(table.metadata.table_uuid)

    def is_foreign(path: str) -> bool:
        content = store.get(path.partition("/")[2])
        return content is not None and _read_uuid(content[0]) != uuid

    paths = sorted(paths)
    # Rule orphans-of-one-table
    others = [path for path, is_other in zip(paths, call_all(is_foreign, paths), strict=True) if is_other]
    if others:
        raise SpecInvalidError(
            f"Iceberg table {'.'.join(table.name())} shares its folder with another table, whose metadata is "
            f"s3://{others[0]}: what that table has cannot be told, so no file is deleted.",
            remedy="Leave 'delete_orphans_days' out; or, if that table is gone for good, delete its metadata files.",
        )


def _read_uuid(body: bytes) -> str | None:
    try:
        text = gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
        return str(json.loads(text)["table-uuid"])
    except (ValueError, KeyError, TypeError, OSError, EOFError):
        return None
