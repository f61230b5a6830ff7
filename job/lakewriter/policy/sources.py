"""Reading what the tables are made of, where it lies in S3."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.s3_statements import list_forms
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Read, Spec

_GLOB: Final = re.compile(r"[*?\[{]")
_S3: Final = {"s3", "s3a", "s3n"}
_MOST_PLACES: Final = 12
"""Of one bucket: a managed policy has 6144 characters."""


def sources(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """The tables' own paths, the messages' and ``deployment.reads``, two statements for each bucket.

    Where a bucket has more than a dozen of them, the folders they lie in stand for them.
    """
    buckets: dict[str, list[str]] = {}
    messages = spec.source.paths if spec.source else ()
    for path in (*deployment.reads, *messages, *(path for table in spec.tables for path in _paths(table.read))):
        url = urlsplit(path, allow_fragments=False)
        if url.scheme.lower() in _S3:
            query = f"?{url.query}" if url.query else ""
            buckets.setdefault(url.netloc, []).append((url.path + query).strip("/"))
    return [
        statement
        for number, (bucket, paths) in enumerate(buckets.items(), start=1)
        for statement in _source(number, bucket, _shortened(paths), arns)
    ]


def _source(number: int, bucket: str, paths: Sequence[str], arns: Arns) -> list[Statement]:
    """Spark asks for a folder as if it were an object first, and S3 says 'absent' and not 'denied' only to
    whoever may list without naming a prefix: hence ``IfExists``."""
    whole = any(_start(path) == "" for path in paths)
    patterns = ["*"] if whole else _distinct(form for path in paths for form in _objects(path))
    listed = _distinct(form for path in paths for form in _listed(path))
    condition = None if whole else {"StringLikeIfExists": {"s3:prefix": listed}}
    return [
        allow(f"ListSource{number}", ["s3:ListBucket"], [arns.bucket(bucket)], condition),
        allow(f"ReadSource{number}", ["s3:GetObject"], [arns.objects(bucket, pattern) for pattern in patterns]),
    ]


def _objects(path: str) -> list[str]:
    start = literal(_start(path))
    return [f"{start}*"] if _GLOB.search(path) else [start, f"{start}/*"]


def _listed(path: str) -> list[str]:
    """A wildcard is looked for in the folder that holds it."""
    start = _start(path)
    folder = start.rpartition("/")[0]
    found = [literal(f"{folder}/" if folder else ""), f"{literal(start)}*"]
    return found if _GLOB.search(path) else list_forms(path)


def _start(path: str) -> str:
    """``path`` up to its first wildcard."""
    found = _GLOB.search(path)
    return path[: found.start()] if found else path


def _shortened(paths: Sequence[str]) -> list[str]:
    shorter = _distinct(paths)
    while len(shorter) > _MOST_PLACES:
        above = _distinct(_start(path).rpartition("/")[0] or path for path in shorter)
        if above == shorter:
            break
        shorter = above
    return shorter


def _paths(read: Read) -> Iterator[str]:
    yield from read.paths
    for view in read.views.values():
        yield from _paths(view)


def _distinct(texts: Iterator[str] | Sequence[str]) -> list[str]:
    return list(dict.fromkeys(texts))
