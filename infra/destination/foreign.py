"""Show the owners of buckets and catalogs in other accounts what to grant: there a permission of our roles is not
enough.

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
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.roles import Role
from lakewriter.policy.sources import allow_sources, list_source_buckets
from lakewriter.policy.statements import Statement

LOAD_ROLE: Final = "<LoadRoleArn>"
"""The state machine's role, an output of the pipeline stack."""

OPERATOR_ROLE: Final = "<OperatorRoleArn>"
"""The operator's role, an output of the same stack."""

Grant = dict[str, Any]


def list_destination_grants(settings: Settings, shown: Arns, holders: Mapping[str, Role]) -> list[Grant]:
    """List what the policy of a destination's bucket has to allow in another account; ``holders`` by readable ARN.

    Outcomes are read by the state machine's role, which is none of the destination's stack.
    """
    if settings.deployment.existing.bucket_account in {None, settings.deployment.account}:
        return []
    access = settings.spec.access
    grants = [grant for arn, role in holders.items() for grant in grant_all(arn, list_allowed(role, "S3"))]
    runs = ControlKeys(access.prefix, settings.spec.pipeline).runs
    outcomes: Statement = {"Action": ["s3:GetObject"], "Resource": [shown.objects(access.bucket, f"{escape(runs)}*")]}
    return [*grants, *grant_all(LOAD_ROLE, [outcomes])]


def warn_owners_of_sources(scope: Construct, *, settings: Settings, shown: Arns, job_role: str) -> None:
    """Warn of each source's bucket in another account; ``job_role`` is the readable ARN of the job's role."""
    deployment = settings.deployment
    read = list_source_buckets(settings.spec, deployment)
    for number, bucket in enumerate(read, start=1):
        given = next(
            (source_bucket for source_bucket in deployment.source_buckets if source_bucket.bucket == bucket), None
        )
        if given is None or given.account in {None, deployment.account}:
            continue
        statements = [
            statement
            for statement in allow_sources(settings.spec, deployment, shown)
            if _is_numbered(statement, number)
        ]
        of_bucket = [statement for statement in statements if not statement["Sid"].startswith("UseKey")]
        of_key = [statement for statement in statements if statement["Sid"].startswith("UseKey")]
        key = f", and to the policy of its key {given.kms_key_arn}: {_print(grant_all(job_role, of_key))}"
        Annotations.of(scope).add_warning_v2(
            f"lakewriter:source-bucket-{number}",
            f"Bucket {bucket!r} is account {given.account}'s. Have its owner add to its policy: "
            f"{_print(grant_all(job_role, of_bucket))}{key if of_key else ''}",
        )


def warn_owner_of_catalog(scope: Construct, *, settings: Settings, shown: Arns, holders: Mapping[str, Role]) -> None:
    """Warn of a Data Catalog in another account; ``holders`` are by readable ARN.

    Vendors are not let in: their calls name no catalog, and so reach this account's.
    https://docs.aws.amazon.com/glue/latest/dg/cross-account-access.html
    """
    spec, deployment = settings.spec, settings.deployment
    readers = {arn: role for arn, role in holders.items() if role.who is not Who.VENDOR}
    if deployment.operators:
        documents = make_documents(spec, deployment, Who.OPERATOR, shown, stage=settings.stage)
        readers[OPERATOR_ROLE] = Role("operators", Who.OPERATOR, documents, None)
    grants = [grant for arn, role in readers.items() for grant in grant_all(arn, list_allowed(role, "Glue"))]
    there = " Lake Formation's grants are that account's to give too." if deployment.lake_formation else ""
    Annotations.of(scope).add_warning_v2(
        "lakewriter:catalog",
        f"The Data Catalog is account {spec.access.catalog_account}'s, where this stack makes no database and grants "
        f"nothing. Have its owner add to the catalog's policy, once these roles are there: {_print(grants)}.{there}",
    )


def list_allowed(role: Role, service: str) -> Iterator[Statement]:
    """List what a role's documents allow in a service of this name alone."""
    for name, document in role.documents.items():
        if name.startswith((service, "All")):
            allowed = (statement for statement in document["Statement"] if statement["Effect"] == "Allow")
            start = f"{service.lower()}:"
            yield from (
                statement for statement in allowed if all(action.startswith(start) for action in statement["Action"])
            )


def grant_all(arn: str, statements: Iterable[Statement]) -> list[Grant]:
    """Grant a principal these statements, as the policy of a resource has them."""
    return [{"Effect": "Allow", "Principal": {"AWS": arn}, **_without_names(statement)} for statement in statements]


def _without_names(statement: Statement) -> Grant:
    return {key: value for key, value in statement.items() if key not in {"Sid", "Effect"}}


def _is_numbered(statement: Statement, number: int) -> bool:
    sid = str(statement["Sid"])
    return sid.removeprefix(sid.rstrip("0123456789")) == str(number)


def _print(grants: Sequence[Grant]) -> str:
    return json.dumps(list(grants))
