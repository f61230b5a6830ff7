"""Where a continuous run remembers what it has read; Spark writes there as the job, whoever writes the tables."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.s3_statements import list_forms
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

S3: Final = ("s3", "s3a", "s3n")
_ACTIONS: Final = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def checkpoint(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Nothing but for a deployment that runs continuously, with its checkpoints in S3.

    Spark looks whether each folder on the way is one, and asks for a folder as if it were an object first: hence the
    folders above, and ``IfExists``, as for sources.
    """
    place = place_of(spec)
    if deployment.spark.mode != "STREAMING" or place is None:
        return []
    bucket, path = place
    if not path:
        return [
            allow("ListCheckpoints", ["s3:ListBucket"], [arns.bucket(bucket)]),
            allow("WriteCheckpoints", _ACTIONS, [arns.objects(bucket)]),
        ]
    listed = [*(form for folder in _above(path) for form in list_forms(folder)[:2]), *list_forms(path)]
    return [
        allow(
            "ListCheckpoints",
            ["s3:ListBucket"],
            [arns.bucket(bucket)],
            {"StringLikeIfExists": {"s3:prefix": listed}},
        ),
        allow("WriteCheckpoints", _ACTIONS, [arns.objects(bucket, f"{literal(path)}/*")]),
    ]


def place_of(spec: Spec) -> tuple[str, str] | None:
    """Bucket and path of the checkpoints, None where they are not in S3."""
    url = urlsplit(spec.checkpoint or "", allow_fragments=False)
    return (url.netloc, url.path.strip("/")) if url.scheme.lower() in S3 else None


def _above(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[:depth]) for depth in range(1, len(parts)))
