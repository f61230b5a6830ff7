"""Set how long Amazon S3 Tables keeps the snapshots of a table, and read what it takes away by itself.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-maintenance.html
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from lakewriter import aws
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.maintenance import Maintenance

_SNAPSHOTS: Final = "icebergSnapshotManagement"
_REMOVAL: Final = "icebergUnreferencedFileRemoval"
_ENABLED: Final = "enabled"
_ABSENT: Final = "NotFoundException"


def make_snapshot_settings(maintenance: Maintenance) -> dict[str, dict[str, Any]]:
    """Make the configuration that is wanted, by its type; none where snapshots stay as the service keeps them."""
    settings = {"maxSnapshotAgeHours": math.ceil(24 * (maintenance.expire_snapshots_days or 0))}
    settings["minSnapshotsToKeep"] = maintenance.keep_snapshots
    return {_SNAPSHOTS: settings} if maintenance.expire_snapshots_days else {}


@dataclass(frozen=True)
class Removal:
    """What the service does with files that no snapshot names: after ``unreferenced`` days nobody can read them, after
    ``noncurrent`` more nobody can bring them back."""

    unreferenced: int
    noncurrent: int


class TableService:
    """Amazon S3 Tables, as it keeps one table; called with the destination's credentials."""

    name: ClassVar[str] = "Amazon S3 Tables"
    purposes: ClassVar[Mapping[str, str]] = {_SNAPSHOTS: "expire snapshots"}
    failure: ClassVar[str] = "Amazon S3 Tables keeps the snapshots of {} as before"

    def __init__(self, clients: aws.Clients, action: IcebergAction, _: Maintenance) -> None:
        self._clients, self._arn = clients, action.service.table_bucket or ""
        self._table = {"tableBucketARN": self._arn, "namespace": action.namespace, "name": action.table}

    def put(self, kind: str, configuration: Mapping[str, Any]) -> None:
        """Set one configuration of the table."""
        value = {"status": _ENABLED, "settings": {kind: configuration}}
        request = self._clients.s3tables.put_table_maintenance_configuration
        self._ask("PutTableMaintenanceConfiguration", lambda: request(**self._table, type=kind, value=value))

    def delete(self, kind: str) -> None:
        """Let the service do as it does by default, which no call says; the settings stay as they are."""

    def find_snapshot_hours(self) -> int | None:
        """Return the hours after which a snapshot expires; None where none does, or there is no such table."""
        request = self._clients.s3tables.get_table_maintenance_configuration
        answer = self._ask("GetTableMaintenanceConfiguration", lambda: request(**self._table), _ABSENT)
        value = answer["configuration"].get(_SNAPSHOTS, {}) if answer else {}
        hours = value.get("settings", {}).get(_SNAPSHOTS, {}).get("maxSnapshotAgeHours")
        return int(hours) if hours is not None and value["status"] == _ENABLED else None

    def _ask(self, doing: str, request: Callable[[], Any], *absent: str) -> Any:
        what = f"s3tables:{doing} on {self._table['namespace']}.{self._table['name']}"
        return aws.ask(request, doing=what, access=self._clients.access, absent=absent)


def find_removal(clients: aws.Clients, arn: str) -> Removal | None:
    """Return what the service does with files of a table bucket that no snapshot names; None where it keeps them."""
    request = clients.s3tables.get_table_bucket_maintenance_configuration
    doing = f"s3tables:GetTableBucketMaintenanceConfiguration on {arn}"
    answer = aws.ask(lambda: request(tableBucketARN=arn), doing=doing, access=clients.access)
    value = answer["configuration"].get(_REMOVAL, {})
    if value.get("status") != _ENABLED:
        return None
    days = value["settings"][_REMOVAL]
    return Removal(int(days["unreferencedDays"]), int(days["nonCurrentDays"]))
