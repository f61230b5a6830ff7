"""Make the bucket's own policy, which denies regardless of what a role allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.control_objects import list_control_objects
from lakewriter.policy.prefixes import find_key_prefix, list_key_prefixes
from lakewriter.policy.statements import Conditions, Document, Statement, make_document
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_ALGORITHM_HEADER: Final = "s3:x-amz-server-side-encryption"
_KEY_HEADER: Final = "s3:x-amz-server-side-encryption-aws-kms-key-id"
_CALLERS_HEADER: Final = "s3:x-amz-server-side-encryption-customer-algorithm"
_BUDGET: Final = 12_000
"""Characters of ARNs in a bucket policy, which S3 limits to 20 KB in all."""


@dataclass(frozen=True)
class Encryption:
    """The keys that objects of a bucket are encrypted with, the present one first, and the ARNs of the principals that
    may encrypt otherwise."""

    keys: tuple[str, ...]
    exempt: tuple[str, ...] = ()


def make_bucket_policy(
    spec: Spec,
    arns: Arns,
    *,
    kept_out: Sequence[str] = (),
    guests: Sequence[Spec] = (),
    encryption: Encryption | None = None,
) -> Document:
    """Make the whole bucket policy; ``kept_out`` are ARNs that may not touch the control objects, ``guests`` further
    pipelines of the bucket, ``encryption`` what a bucket with a customer's key holds everybody to."""
    return make_document(
        [
            deny_without_tls(spec, arns),
            *(deny_other_encryption(spec, arns, encryption) if encryption else []),
            *deny_replacement(spec, arns, guests),
            *deny_control_objects(spec, arns, roles=kept_out),
        ]
    )


def deny_without_tls(spec: Spec, arns: Arns) -> Statement:
    """Deny every request without TLS."""
    name = spec.access.bucket
    resources = [arns.bucket(name), arns.objects(name)]
    return _deny("RequireTls", ["s3:*"], resources, {"Bool": {"aws:SecureTransport": "false"}})


def find_encryption(deployment: Deployment, arns: Arns, exempt: Sequence[str] = ()) -> Encryption | None:
    """Find the keys that a bucket's objects have to be under; None for S3's own keys, or while the key is not known."""
    key = arns.key or deployment.existing.kms_key_arn
    return Encryption((key, *deployment.earlier_kms_key_arns), tuple(exempt)) if key else None


def deny_other_encryption(spec: Spec, arns: Arns, encryption: Encryption) -> list[Statement]:
    """Deny objects under another key, under S3's own, and under one that the caller keeps.

    A request without these headers gets the bucket's encryption, as do the parts and the completion of an upload. A
    negated condition holds for a header that is not there, with ``IfExists`` too, so ``Null`` asks for it first:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    objects = [arns.objects(spec.access.bucket)]
    others: Conditions = {"ArnNotEquals": {"aws:PrincipalArn": list(encryption.exempt)}} if encryption.exempt else {}
    # As text: an id without the rest of the ARN, which may be another account's key, is no ARN to compare.
    another: Conditions = {"Null": {_KEY_HEADER: "false"}, "StringNotEquals": {_KEY_HEADER: list(encryption.keys)}}
    # The algorithm without a key is S3's own key, or AWS's for S3.
    unnamed: Conditions = {"Null": {_ALGORITHM_HEADER: "false", _KEY_HEADER: "true"}}
    callers: Conditions = {"Null": {_CALLERS_HEADER: "false"}}
    return [
        _deny("EncryptWithTheKey", ["s3:PutObject"], objects, {**another, **others}),
        _deny("NameTheKey", ["s3:PutObject"], objects, {**unnamed, **others}),
        _deny("NoKeyOfTheCaller", ["s3:PutObject"], objects, {**callers, **others}),
    ]


def deny_replacement(spec: Spec, arns: Arns, guests: Sequence[Spec] = ()) -> list[Statement]:
    """Deny replacing an object of a table in append mode, of this pipeline's or of a guest's.

    A folder of Airbyte's layout that two of them write is left out: the record in it of who writes there is replaced
    when the second one comes.

    Parts of a multipart upload create no object: ``s3:ObjectCreationOperation`` is false for them.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
    """
    specs = (spec, *guests)
    records = _list_shared_records(specs)
    starts = [start for spec in specs for start in list_append_only_prefixes(spec, _BUDGET // len(specs))]
    roots = [start for start in starts if not any(key.startswith(start) for key in records)]
    if not roots:
        return []
    conditions = {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}}
    resources = [arns.objects(spec.access.bucket, f"{escape(start)}*") for start in roots]
    return [_deny("KeepObjectsOfTables", ["s3:PutObject"], resources, conditions)]


def list_append_only_prefixes(spec: Spec, budget: int = _BUDGET) -> list[str]:
    """List the key prefixes under which every PUT must carry ``If-None-Match``.

    Empty for a single writer, which sends no conditions, and for Iceberg, whose files other engines write too. A prefix
    that control objects share is left out, since the job replaces those.
    """
    return [] if spec.access.single_writer or spec.iceberg else _find_append_only_prefixes(spec, budget)


def deny_control_objects(spec: Spec, arns: Arns, *, roles: Sequence[str]) -> list[Statement]:
    """Deny ``roles`` the control objects; their ARNs are compared as text, so a recreated role is still denied."""
    if not roles:
        return []
    conditions: Conditions = {"ArnEquals": {"aws:PrincipalArn": list(roles)}}
    return [_deny("KeepOutOfControlObjects", ["s3:*"], list_control_objects(spec, arns), conditions)]


def _list_shared_records(specs: Sequence[Spec]) -> list[str]:
    """List what the keys of the records begin with that lie in folders which several pipelines write."""
    folders = [{find_key_prefix(table) for table in spec.tables} for spec in specs if spec.envelope is not None]
    shared = [
        folder
        for pipeline_folders in folders
        for folder in pipeline_folders
        if sum(folder in others for others in folders) > 1
    ]
    return sorted({f"{folder.rpartition('/')[0]}/{CONTROL_DIRECTORY}/" for folder in shared})


def _deny(sid: str, actions: Sequence[str], resources: Sequence[str], conditions: Conditions) -> Statement:
    return {
        "Sid": sid,
        "Effect": "Deny",
        "Principal": "*",
        "Action": list(actions),
        "Resource": list(resources),
        "Condition": {operator: dict(keys) for operator, keys in conditions.items()},
    }


def _list_append_only(table: TableSpec) -> list[str]:
    """Return the prefixes of keys under which no object is replaced: not those of a table whose full refreshes replace
    objects, but those of its quarantine.
    """
    prefix = f"{table.path}/g" if table.latest is not None else find_key_prefix(table)
    prefixes = [prefix] if table.latest is not None or table.mode.brings_changes else []
    return [*prefixes, *list_key_prefixes(table)[1:]]


def _find_append_only_prefixes(spec: Spec, budget: int) -> list[str]:
    """Find the tables' key prefixes, or those of their schemas if they do not fit into a bucket policy.

    A prefix that control objects share is left out, since the job replaces those.
    """
    records = f"{join_key(spec.access.prefix, CONTROL_DIRECTORY)}/"

    def is_apart(start: str) -> bool:
        return not records.startswith(start)

    exact = [start for table in spec.tables for start in _list_append_only(table) if start and is_apart(start)]
    if sum(len(start) + len(spec.access.bucket) + 30 for start in exact) <= budget:
        return exact
    # Each full refresh replaces the object that names its files.
    replaced = [table.latest for table in spec.tables if table.latest is not None]
    above = {start: start.rstrip("/").rpartition("/")[0] for start in exact}

    def may_shorten(folder: str) -> bool:
        return is_apart(folder) and not any(key.startswith(folder) for key in replaced)

    shorter = (f"{folder}/" if folder and may_shorten(f"{folder}/") else start for start, folder in above.items())
    return list(dict.fromkeys(shorter))
