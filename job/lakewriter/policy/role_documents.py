"""Make the permissions of every role on a destination, one document for each service."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakewriter.errors import SpecInvalidError
from lakewriter.policy import catalog_statements as catalog
from lakewriter.policy import s3_statements as storage
from lakewriter.policy import table_bucket
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.checkpoint import allow_checkpoints, locate_checkpoints
from lakewriter.policy.deployer_statements import allow_deployer
from lakewriter.policy.division import divide
from lakewriter.policy.operator_statements import allow_operator
from lakewriter.policy.parties import Reach, find_policy, find_reach
from lakewriter.policy.secrets import allow_assume_role, allow_secrets
from lakewriter.policy.sources import allow_sources
from lakewriter.policy.statements import Document, Statement, allow, make_document
from lakewriter.policy.who import Who
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import METRICS_NAMESPACE, Spec
from lakewriter.spec.trust import Party
from lakewriter.spec.vendor_policy import Target, VendorPolicy, VendorStatement

__all__ = ["Document", "Who", "find_who", "make_documents"]

Named = dict[str, list[Statement]]


def find_who(party: Party) -> Who:
    """Find the kind of role that a party gets."""
    return {"write": Who.VENDOR, "read": Who.READER, "load": Who.LOADER}[party.access]


def make_documents(
    spec: Spec,
    deployment: Deployment,
    who: Who,
    arns: Arns,
    party: Party | None = None,
    *,
    stage: str | None = None,
    state_machines: Sequence[str] = (),
) -> dict[str, Document]:
    """Make the documents of one kind of role by name, without empty ones, in this order: ``S3``, ``Control``,
    ``S3Tables``, ``Glue``, ``Kms``, ``AssumeRole``, ``Secrets``, ``Sources``, ``Checkpoint``, ``Metrics``.

    ``party`` bounds what a vendor or a reader reaches, ``state_machines`` are those that an operator starts, ``stage``
    what an operator looks after and a deployer deploys. ``Control`` denies what is the job's to a vendor with its own
    documents (``vendor_verbatim``); for others ``S3`` and ``Glue`` do. A name that IAM's limit divides is numbered from
    its second document on. Raises ``SPEC_INVALID`` if the bucket's key is unknown, or the vendor publishes no
    documents.
    """
    if who is not Who.VENDOR:
        # A vendor's calls name no catalog, so that they reach that of its role's account.
        arns = replace(arns, catalog=spec.access.catalog_account)
    makers: dict[Who, Callable[[], Named]] = {
        Who.JOB: lambda: _allow_job(spec, deployment, arns),
        Who.LOADER: lambda: _allow_loader(spec, deployment, arns),
        Who.VENDOR: lambda: _allow_vendor(spec, deployment, arns, party or Party()),
        Who.CATALOG: lambda: _allow_catalog(spec, deployment, arns),
        Who.READER: lambda: _allow_reader(spec, deployment, arns, party),
        Who.OPTIMIZER: lambda: _allow_optimizer(spec, deployment, arns),
        Who.OPERATOR: lambda: allow_operator(spec, deployment, arns, stage or "dev", state_machines),
        Who.DEPLOYER: lambda: allow_deployer(spec, deployment, arns, stage or "dev"),
    }
    named = {name: statements for name, statements in makers[who]().items() if statements}
    return {name: make_document(statements) for name, statements in divide(named, arns).items()}


def _allow_job(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    """Allow the job what it needs; a role to assume, or keys, hold the permissions on the destination themselves."""
    if spec.access.access_key_id:
        at_destination: Named = {}
    elif spec.access.role_arn:
        at_destination = {"AssumeRole": allow_assume_role(spec)}
    else:
        at_destination = _allow_loader(spec, deployment, arns)
    return {
        **at_destination,
        "Secrets": allow_secrets(spec, deployment, arns),
        "Sources": allow_sources(spec, deployment, arns),
        "Checkpoint": _allow_checkpoints(spec, deployment, arns, has_key="Kms" in at_destination),
        "Metrics": _allow_metrics(spec),
    }


def _allow_metrics(spec: Spec) -> list[Statement]:
    """Allow sending a continuous run's metrics, which have no resource, in their namespace alone."""
    if not spec.put_metrics:
        return []
    namespace = {"StringEquals": {"cloudwatch:namespace": METRICS_NAMESPACE}}
    return [allow("PutMetrics", ["cloudwatch:PutMetricData"], ["*"], namespace)]


def _allow_checkpoints(spec: Spec, deployment: Deployment, arns: Arns, *, has_key: bool) -> list[Statement]:
    """Allow the checkpoints, and the bucket's key if they are in the destination's bucket."""
    location, statements = locate_checkpoints(spec), allow_checkpoints(spec, deployment, arns)
    if not statements or has_key or location is None or location[0] != spec.access.bucket:
        return statements
    return [*statements, *storage.allow_encryption(spec, deployment, arns, writes=True)]


def _allow_loader(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    return {
        "S3": storage.allow_loader(spec, arns),
        "S3Tables": table_bucket.allow_loader(spec),
        "Glue": catalog.allow_loader(spec, deployment, arns),
        "Kms": [
            *storage.allow_encryption(spec, deployment, arns, writes=True),
            *catalog.allow_key(deployment, is_asked=spec.in_glue),
        ],
    }


def _allow_vendor(spec: Spec, deployment: Deployment, arns: Arns, party: Party) -> Named:
    reach, policy = find_reach(spec, party), find_policy(spec, party)
    key = [
        *storage.allow_encryption(spec, deployment, arns, writes=True),
        *catalog.allow_key(deployment, is_asked=bool(reach.catalog)),
    ]
    if deployment.vendor_verbatim and (policy or spec.vendor_policy is None):
        verbatim = _make_vendor_statements(spec, arns, policy, reach)
        denied = [*storage.deny_what_is_the_jobs(spec, arns, reach), *catalog.deny_what_is_the_jobs(arns, reach)]
        return {"S3": verbatim["S3"], "Control": denied, "Glue": verbatim["Glue"], "Kms": key}
    tables = catalog.allow_vendor(spec, deployment, arns, reach, policy)
    return {"S3": storage.allow_vendor(spec, arns, reach, policy), "Glue": tables, "Kms": key}


def _allow_catalog(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    return {
        "S3": storage.allow_catalog(spec, arns),
        "Kms": storage.allow_encryption(spec, deployment, arns, writes=True),
    }


def _allow_optimizer(spec: Spec, deployment: Deployment, arns: Arns) -> Named:
    """Allow what Open Catalog does with the files of Iceberg tables, and Glue in place of that."""
    allowed = _allow_catalog(spec, deployment, arns)
    key = [*allowed["Kms"], *catalog.allow_key(deployment, is_asked=True)]
    return allowed | {"Kms": key, "Glue": catalog.allow_optimizer(spec, deployment, arns)}


def _allow_reader(spec: Spec, deployment: Deployment, arns: Arns, party: Party | None) -> Named:
    """Allow a party to read; None is Snowflake's compute, which lists whole locations."""
    reader = party or Party(access="read")
    tables = catalog.allow_reader(spec, deployment, arns, reader)
    return {
        "S3": storage.allow_reader(spec, arns, find_reach(spec, reader), hidden=party is not None),
        "S3Tables": table_bucket.allow_reader(spec, deployment, reader),
        "Glue": tables,
        "Kms": [
            *storage.allow_encryption(spec, deployment, arns, writes=False),
            *catalog.allow_key(deployment, is_asked=bool(tables)),
        ],
    }


_Targets = Mapping[Target, Callable[[], list[str]]]


def _make_vendor_statements(
    spec: Spec, arns: Arns, policy: VendorPolicy | None, reach: Reach
) -> dict[str, list[Statement]]:
    """Make ``S3`` and ``Glue`` as the vendor's set-up page prints them, with its placeholders filled in.

    ``Glue`` is on what the party reaches where its databases are not those of the file.
    """
    if policy is None:
        raise SpecInvalidError(
            "deployment.vendor_verbatim: expected a destination whose vendor publishes a policy, "
            f"got {spec.dialect!r}.",
            remedy="Remove deployment.vendor_verbatim, or set it to false.",
        )
    arns_by_target = _list_targets(spec, arns, () if policy == spec.vendor_policy else reach.catalog)
    prefix = escape(spec.access.prefix)
    return {
        "S3": [_fill_statement(statement, arns_by_target, prefix) for statement in policy.s3],
        "Glue": [_fill_statement(statement, arns_by_target, prefix) for statement in policy.glue]
        if reach.catalog
        else [],
    }


def _fill_statement(statement: VendorStatement, arns_by_target: _Targets, prefix: str) -> Statement:
    """Fill in one statement, with the vendor's condition on ``s3:prefix``, which only ListBucket can meet."""
    condition = {"StringLike": {"s3:prefix": [f"{prefix}/*"]}} if prefix and statement.prefix_only else None
    resources = [arn for target in statement.targets for arn in arns_by_target[target]()]
    return allow(statement.sid, statement.actions, resources, condition)


def _list_targets(spec: Spec, arns: Arns, catalog: Sequence[str]) -> _Targets:
    """List the places of a document; ``catalog`` is another vendor's in place of the file's own.

    Name the file's databases if there is no prefix: the vendor's ``*`` would open every database of the account."""
    bucket, prefix, below = spec.access.bucket, escape(spec.access.prefix), escape(spec.database_prefix)
    databases = [f"{below}*"] if below else list(dict.fromkeys(table.schema_name for table in spec.tables))
    if catalog:
        databases = [path.removeprefix("database/") for path in catalog if path.startswith("database/")]
    return {
        Target.BUCKET: lambda: [arns.bucket(bucket)],
        Target.OBJECTS: lambda: [arns.objects(bucket)],
        Target.OBJECTS_IN_PREFIX: lambda: [arns.objects(bucket, f"{prefix}/*" if prefix else "*")],
        Target.CATALOG: lambda: [arns.glue("catalog")],
        Target.DATABASES: lambda: [arns.glue(f"database/{name}") for name in databases],
        Target.TABLES: lambda: [arns.glue(f"table/{name}/*") for name in databases],
    }
