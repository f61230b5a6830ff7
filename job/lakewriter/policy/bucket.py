"""Statements of the bucket's own policy: they bind everybody, whatever their roles allow."""

from collections.abc import Sequence
from typing import Final

from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy import s3_statements as storage
from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.statements import Conditions, Document, Statement, document
from lakewriter.spec.specification import Mode, Spec, TableSpec

_BUDGET: Final = 12_000
"""Characters of ARNs in a bucket policy, which S3 limits to 20 KB in all."""


def bucket_policy(spec: Spec, arns: Arns, *, kept_out: Sequence[str] = ()) -> Document:
    """All of it, for the owner of a bucket that no stack makes."""
    return document(
        [tls_only(spec, arns), *append_only(spec, arns), *control_objects_denied(spec, arns, roles=kept_out)]
    )


def tls_only(spec: Spec, arns: Arns) -> Statement:
    """Nothing goes over the network in the clear."""
    name = spec.access.bucket
    resources = [arns.bucket(name), arns.objects(name)]
    return _denied("RequireTls", ["s3:*"], resources, {"Bool": {"aws:SecureTransport": "false"}})


def append_only(spec: Spec, arns: Arns) -> list[Statement]:
    """No object of a table that is appended to is ever replaced.

    Parts of a multipart upload create no object: ``s3:ObjectCreationOperation`` is false for them.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
    """
    roots = kept(spec)
    if not roots:
        return []
    conditions = {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    resources = [arns.objects(spec.access.bucket, f"{literal(start)}*") for start in roots]
    return [_denied("KeepObjectsOfTables", ["s3:PutObject"], resources, conditions)]


def kept(spec: Spec) -> list[str]:
    """What the keys begin with that nobody may put without ``If-None-Match``; none for a job that writes without
    conditions, nor for Iceberg, whose files other engines write too, nor where a table's keys could be the job's own
    records'."""
    return [] if spec.access.single_writer or spec.iceberg else _roots(spec)


def control_objects_denied(spec: Spec, arns: Arns, *, roles: Sequence[str]) -> list[Statement]:
    """``roles`` are ARNs, compared as texts: a role made anew under its name is still meant."""
    if not roles:
        return []
    conditions: Conditions = {"ArnEquals": {"aws:PrincipalArn": list(roles)}}
    return [_denied("KeepOutOfControlObjects", ["s3:*"], storage.control_objects(spec, arns), conditions)]


def _denied(sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Deny",
        "Principal": "*",
        "Action": list(actions),
        "Resource": list(resources),
        "Condition": {operator: dict(keys) for operator, keys in conditions.items()},
    }


def _roots(spec: Spec) -> list[str]:
    """What the tables' keys begin with, or their schemas' where so many would not fit; never what the job's records
    begin with too, since those it does replace."""
    records = f"{join_key(spec.access.prefix, CONTROL_DIRECTORY)}/"

    def apart(start: str) -> bool:
        return not records.startswith(start)

    exact = [start for table in spec.tables if table.mode is Mode.APPEND and apart(start := start_of(table))]
    if sum(len(start) + len(spec.access.bucket) + 30 for start in exact) <= _BUDGET:
        return exact
    above = {start: start.rstrip("/").rpartition("/")[0] for start in exact}
    shorter = (f"{folder}/" if folder and apart(f"{folder}/") else start for start, folder in above.items())
    return list(dict.fromkeys(shorter))


def start_of(table: TableSpec) -> str:
    """What the keys of a table begin with: its folder, or as much of it as is constant."""
    return f"{table.path}/" if table.layout.directory else table.layout.prefix
