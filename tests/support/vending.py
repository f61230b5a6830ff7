"""Credentials that a catalog hands out for a table's location, with the rights that Polaris gives them.

https://github.com/apache/polaris: AwsCredentialsStorageIntegration allows to get, put and delete objects under the
location and to list it; nothing lets anybody list uploads or abort them.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from tests.support.call import Answer, Call

Proceed = Callable[[Call], Answer]

_ON_OBJECTS = {"s3:GetObject", "s3:PutObject", "s3:DeleteObject"}
_OF_OTHERS = {"s3:ListBucketMultipartUploads", "s3:AbortMultipartUpload"}


@dataclass
class Vending:
    """What was handed out; as a rule of the embedded AWS, who may touch what lies under ``root``.

    ``told_by`` says in which part of an answer credentials are, ``tells_end`` whether their end is told.
    """

    root: str
    told_by: Literal["config", "storage-credentials"] = "config"
    tells_end: bool = True
    lifetime: timedelta = timedelta(hours=1)
    keys: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    """Location and end, by access key."""
    secrets: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    refused: list[Call] = field(default_factory=list)

    def credentials(self, location: str) -> dict[str, Any]:
        """What an answer has more than it would have without."""
        key, secret, token = f"ASIA{uuid.uuid4().hex[:16].upper()}", uuid.uuid4().hex, uuid.uuid4().hex
        end = datetime.now(UTC) + self.lifetime
        self.keys[key] = (location, end)
        self.secrets |= {secret, token}
        config = {"s3.access-key-id": key, "s3.secret-access-key": secret, "s3.session-token": token}
        if self.tells_end:
            config["s3.session-token-expires-at-ms"] = str(round(end.timestamp() * 1000))
        if self.told_by == "config":
            return {"config": config}
        return {"storage-credentials": [{"prefix": "s3://", "config": {}}, {"prefix": location, "config": config}]}

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        """Only what was handed out reaches the objects under ``root``, and it reaches nothing else."""
        if call.service != "s3":
            return proceed(call)
        if call.access_key in self.keys:
            self.used.add(call.access_key)
        elif call.action in _OF_OTHERS or not self._place(call).startswith(self.root):
            return proceed(call)
        return proceed(call) if self._allowed(call) else self._refuse(call)

    def _allowed(self, call: Call) -> bool:
        location, end = self.keys.get(call.access_key, ("none", datetime.min.replace(tzinfo=UTC)))
        allowed = call.action in _ON_OBJECTS or call.action == "s3:ListBucket"
        return allowed and datetime.now(UTC) < end and self._place(call).startswith(location)

    def _refuse(self, call: Call) -> Answer:
        self.refused.append(call)
        return call.denied()

    def _place(self, call: Call) -> str:
        return f"s3://{call.bucket}/{call.key or call.query.get('prefix', '')}"
