"""The upkeep of Amazon S3 Tables as its API shows it, which moto does not have.

Operations: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_S3_Tables.html; defaults:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-considerations.html
"""

import json
from collections.abc import Callable
from typing import Any

from tests.support.call import Answer, Call

REMOVAL, SNAPSHOTS = "icebergUnreferencedFileRemoval", "icebergSnapshotManagement"
DEFAULTS: dict[str, dict[str, int]] = {
    REMOVAL: {"unreferencedDays": 3, "nonCurrentDays": 10},
    SNAPSHOTS: {"maxSnapshotAgeHours": 120, "minSnapshotsToKeep": 1},
}


class TableUpkeep:
    """``buckets`` are the ARNs of table buckets with their days, or None where the service removes no file; ``tables``
    by namespace and name, as far as somebody has set them."""

    def __init__(self) -> None:
        self.buckets: dict[str, dict[str, int] | None] = {}
        self.tables: dict[tuple[str, str], dict[str, Any]] = {}

    def __call__(self, call: Call, proceed: Callable[[Call], Answer]) -> Answer:
        """Answer what is about a table bucket or its upkeep."""
        asked, arn = call.document, call.document.get("arn", "")
        if call.action == "s3tables:PutTableMaintenanceConfiguration":
            self.tables[asked["namespace"], asked["name"]] = {asked["type"]: asked["value"]}
            return Answer(204)
        if call.action == "s3tables:GetTableMaintenanceConfiguration":
            found = self.tables.get((asked["namespace"], asked["name"])) or {SNAPSHOTS: make_value(SNAPSHOTS)}
            return _answer({"tableARN": call.resource, "configuration": found})
        if not call.action.startswith("s3tables:GetTableBucket"):
            return proceed(call)
        if arn not in self.buckets:
            return call.error(404, "NotFoundException", "The specified bucket does not exist.")
        if call.action == "s3tables:GetTableBucket":
            name, account = arn.rpartition("/")[2], arn.split(":")[4]
            return _answer({"arn": arn, "name": name, "ownerAccountId": account, "createdAt": "2027-01-04T06:00:00Z"})
        days = self.buckets[arn]
        value = make_value(REMOVAL, days) if days else {"status": "disabled"}
        return _answer({"tableBucketARN": arn, "configuration": {REMOVAL: value}})


def make_value(kind: str, settings: dict[str, int] | None = None) -> dict[str, Any]:
    """A configuration that is enabled, by default as the service has it."""
    return {"status": "enabled", "settings": {kind: settings or DEFAULTS[kind]}}


def _answer(content: dict[str, Any]) -> Answer:
    return Answer(200, (("Content-Type", "application/json"),)).with_body(json.dumps(content).encode())
