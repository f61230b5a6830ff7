"""Allow reading the sources that are in S3."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from lakewriter.policy.arns import Arns, escape, name_services
from lakewriter.policy.checkpoint import S3
from lakewriter.policy.s3_statements import list_prefix_values
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_GLOB: Final = re.compile(r"[*?\[{]")
_MOST_PATHS: Final = 100
"""The most paths that are allowed one by one: together they fill a few policies of the ten that a role may have."""


def allow_sources(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Allow reading the tables' paths, the messages' and ``deployment.reads``: for each bucket a statement that lists
    and one that reads.

    If a bucket has more than a hundred paths, their parent folders are allowed instead.
    """
    keys = {source_bucket.bucket: source_bucket.kms_key_arn for source_bucket in deployment.source_buckets}
    of_tables = [
        statement
        for number, (bucket, paths) in enumerate(list_source_buckets(spec, deployment).items(), start=1)
        for statement in (
            *_allow_source(number, bucket, _shorten(paths), arns),
            *allow_key_of_objects(f"UseKeyOfSource{number}", ["kms:Decrypt"], keys.get(bucket)),
        )
    ]
    return [*of_tables, *_allow_jars(deployment, arns)]


def _allow_jars(deployment: Deployment, arns: Arns) -> Iterator[Statement]:
    """Allow reading exactly the jars of ``deployment.jars`` and ``spark.jars``, and the keys of their buckets."""
    jars = [urlsplit(jar) for jar in deployment.jar_objects]
    if jars:
        objects = [arns.objects(jar.netloc, escape(jar.path.lstrip("/"))) for jar in jars]
        yield allow("ReadJars", ["s3:GetObject"], _drop_duplicates(objects))
    buckets = {jar.netloc for jar in jars}
    given = {entry.kms_key_arn for entry in deployment.source_buckets if entry.bucket in buckets}
    keys = sorted(key for key in given if key)
    if keys:
        regions = sorted({key.split(":")[3] for key in keys})
        through = [name for region in regions for name in _list_names(region)]
        yield allow("UseKeyOfJars", ["kms:Decrypt"], keys, {"StringEquals": {"kms:ViaService": through}})


def _list_names(region: str) -> list[str]:
    names = name_services(["s3"], region)
    return [names] if isinstance(names, str) else names


def list_source_buckets(spec: Spec, deployment: Deployment) -> dict[str, list[str]]:
    """List the paths that are read by their buckets."""
    buckets: dict[str, list[str]] = {}
    messages = spec.source.paths if spec.source else ()
    for path in (*deployment.reads, *messages, *(path for table in spec.tables for path in table.read.needed_paths)):
        url = urlsplit(path, allow_fragments=False)
        if url.scheme.lower() in S3:
            query = f"?{url.query}" if url.query else ""
            buckets.setdefault(url.netloc, []).append((url.path + query).strip("/"))
    return buckets


def allow_key_of_objects(sid: str, actions: Sequence[str], key: str | None) -> list[Statement]:
    """Allow the key of a bucket's objects, through S3 in the key's region only; nothing where the bucket has none."""
    if key is None:
        return []
    through_s3 = {"StringEquals": {"kms:ViaService": name_services(["s3"], key.split(":")[3])}}
    return [allow(sid, actions, [key], through_s3)]


def _allow_source(number: int, bucket: str, paths: Sequence[str], arns: Arns) -> list[Statement]:
    """Allow one bucket's paths. Spark sends HEAD for a folder as if it were an object first, and S3 answers 404
    instead of 403 only to callers that may list without a prefix: hence ``IfExists``."""
    whole = any(_cut_at_wildcard(path) == "" for path in paths)
    patterns = ["*"] if whole else _drop_duplicates(form for path in paths for form in _list_object_patterns(path))
    listed = _drop_duplicates(form for path in paths for form in _list_prefix_patterns(path))
    condition = None if whole else {"StringLikeIfExists": {"s3:prefix": listed}}
    return [
        allow(f"ListSource{number}", ["s3:ListBucket"], [arns.bucket(bucket)], condition),
        allow(f"ReadSource{number}", ["s3:GetObject"], [arns.objects(bucket, pattern) for pattern in patterns]),
    ]


def _list_object_patterns(path: str) -> list[str]:
    start = escape(_cut_at_wildcard(path))
    return [f"{start}*"] if _GLOB.search(path) else [start, f"{start}/*"]


def _list_prefix_patterns(path: str) -> list[str]:
    """List the prefixes that Spark lists for a path; for a wildcard it lists the folder that holds it."""
    if not _GLOB.search(path):
        return list_prefix_values(path)
    start = _cut_at_wildcard(path)
    folder = start.rpartition("/")[0]
    return [escape(f"{folder}/" if folder else ""), f"{escape(start)}*"]


def _cut_at_wildcard(path: str) -> str:
    """Return ``path`` up to its first wildcard."""
    wildcard = _GLOB.search(path)
    return path[: wildcard.start()] if wildcard else path


def _shorten(paths: Sequence[str]) -> list[str]:
    shorter = _drop_duplicates(paths)
    while len(shorter) > _MOST_PATHS:
        above = _drop_duplicates(_cut_at_wildcard(path).rpartition("/")[0] or path for path in shorter)
        if above == shorter:
            break
        shorter = above
    return shorter


def _drop_duplicates(texts: Iterator[str] | Sequence[str]) -> list[str]:
    return list(dict.fromkeys(texts))
