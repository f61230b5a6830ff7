"""Allow Spark to write the checkpoints of a continuous run; it signs as the job, even if tables use another role."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.s3_statements import list_prefix_values
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

S3: Final = ("s3", "s3a", "s3n")
_ACTIONS: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def allow_checkpoints(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Allow listing and writing checkpoints in S3; empty unless the deployment runs continuously.

    Spark lists every parent folder, and sends HEAD for a folder as if it were an object first: hence the parents, and
    ``IfExists``, as for sources.
    """
    location = locate_checkpoints(spec)
    if deployment.spark.mode != "STREAMING" or location is None:
        return []
    bucket, path = location
    if not path:
        return [
            allow("ListCheckpoints", ["s3:ListBucket"], [arns.bucket(bucket)]),
            allow("WriteCheckpoints", _ACTIONS, [arns.objects(bucket)]),
        ]
    listed = [
        *(form for folder in _list_parents(path) for form in list_prefix_values(folder)[:2]),
        *list_prefix_values(path),
    ]
    return [
        allow(
            "ListCheckpoints",
            ["s3:ListBucket"],
            [arns.bucket(bucket)],
            {"StringLikeIfExists": {"s3:prefix": listed}},
        ),
        allow("WriteCheckpoints", _ACTIONS, [arns.objects(bucket, f"{escape(path)}/*")]),
    ]


def locate_checkpoints(spec: Spec) -> tuple[str, str] | None:
    """Find bucket and path of the checkpoints; None if they are not in S3."""
    url = urlsplit(spec.checkpoint or "", allow_fragments=False)
    return (url.netloc, url.path.strip("/")) if url.scheme.lower() in S3 else None


def _list_parents(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts)))
