"""Tell the owners of buckets in other accounts what to grant: there a permission of our roles is not enough.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/example-walkthroughs-managing-access-example2.html
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from aws_cdk import Annotations
from constructs import Construct

from infra.settings import Settings
from lakewriter.naming import ControlKeys
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.roles import Role
from lakewriter.policy.sources import allow_sources, list_source_buckets
from lakewriter.policy.statements import Statement

LOAD_ROLE: Final = "<LoadRoleArn>"
"""The state machine's role, an output of the pipeline stack."""

Grant = dict[str, Any]


def list_destination_grants(settings: Settings, shown: Arns, holders: Mapping[str, Role]) -> list[Grant]:
    """List what the policy of a destination's bucket has to allow in another account; ``holders`` by readable ARN.

    Outcomes are read by the state machine's role, which is none of the destination's stack.
    """
    if settings.deployment.existing.bucket_account in {None, settings.deployment.account}:
        return []
    access = settings.spec.access
    grants = [grant for arn, role in holders.items() for grant in _grant_all(arn, _list_allowed(role))]
    runs = ControlKeys(access.prefix, settings.spec.pipeline).runs
    outcomes: Statement = {"Action": ["s3:GetObject"], "Resource": [shown.objects(access.bucket, f"{escape(runs)}*")]}
    return [*grants, *_grant_all(LOAD_ROLE, [outcomes])]


def warn_owners_of_sources(scope: Construct, *, settings: Settings, shown: Arns, job_role: str) -> None:
    """Warn of each source's bucket in another account; ``job_role`` is the readable ARN of the job's role."""
    deployment = settings.deployment
    read = list_source_buckets(settings.spec, deployment)
    for number, bucket in enumerate(read, start=1):
        given = next((each for each in deployment.source_buckets if each.bucket == bucket), None)
        if given is None or given.account in {None, deployment.account}:
            continue
        statements = [each for each in allow_sources(settings.spec, deployment, shown) if _is_numbered(each, number)]
        of_bucket = [each for each in statements if not each["Sid"].startswith("UseKey")]
        of_key = [each for each in statements if each["Sid"].startswith("UseKey")]
        key = f", and to the policy of its key {given.kms_key_arn}: {_print(_grant_all(job_role, of_key))}"
        Annotations.of(scope).add_warning_v2(
            f"lakewriter:source-bucket-{number}",
            f"Bucket {bucket!r} is account {given.account}'s. Have its owner add to its policy: "
            f"{_print(_grant_all(job_role, of_bucket))}{key if of_key else ''}",
        )


def _list_allowed(role: Role) -> Iterator[Statement]:
    for name, document in role.documents.items():
        if name.startswith(("S3", "All")):
            allowed = (each for each in document["Statement"] if each["Effect"] == "Allow")
            yield from (each for each in allowed if all(action.startswith("s3:") for action in each["Action"]))


def _grant_all(arn: str, statements: Iterable[Statement]) -> list[Grant]:
    return [{"Effect": "Allow", "Principal": {"AWS": arn}, **_without_names(each)} for each in statements]


def _without_names(statement: Statement) -> Grant:
    return {key: value for key, value in statement.items() if key not in {"Sid", "Effect"}}


def _is_numbered(statement: Statement, number: int) -> bool:
    sid = str(statement["Sid"])
    return sid.removeprefix(sid.rstrip("0123456789")) == str(number)


def _print(grants: Sequence[Grant]) -> str:
    return json.dumps(list(grants))
