"""Make the vendors' own policies, word for word, for a vendor that compares them; elsewhere we allow less."""

from collections.abc import Callable, Mapping, Sequence

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.parties import Reach
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.specification import Spec
from lakewriter.spec.vendor_policy import Place, VendorPolicy, VendorStatement

_Places = Mapping[Place, Callable[[], list[str]]]


def make_vendor_statements(
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
    places = _list_places(spec, arns, () if policy == spec.vendor_policy else reach.catalog)
    prefix = escape(spec.access.prefix)
    return {
        "S3": [_fill_statement(statement, places, prefix) for statement in policy.s3],
        "Glue": [_fill_statement(statement, places, prefix) for statement in policy.glue] if reach.catalog else [],
    }


def _fill_statement(statement: VendorStatement, places: _Places, prefix: str) -> Statement:
    """Fill in one statement, with the vendor's condition on ``s3:prefix``, which only ListBucket can meet."""
    condition = {"StringLike": {"s3:prefix": [f"{prefix}/*"]}} if prefix and statement.prefix_only else None
    resources = [arn for place in statement.places for arn in places[place]()]
    return allow(statement.sid, statement.actions, resources, condition)


def _list_places(spec: Spec, arns: Arns, catalog: Sequence[str]) -> _Places:
    """List the places of a document; ``catalog`` is another vendor's in place of the file's own.

    Name the file's databases if there is no prefix: the vendor's ``*`` would open every database of the account."""
    bucket, prefix, below = spec.access.bucket, escape(spec.access.prefix), escape(spec.database_prefix)
    databases = [f"{below}*"] if below else list(dict.fromkeys(table.schema_name for table in spec.tables))
    if catalog:
        databases = [path.removeprefix("database/") for path in catalog if path.startswith("database/")]
    return {
        Place.BUCKET: lambda: [arns.bucket(bucket)],
        Place.OBJECTS: lambda: [arns.objects(bucket)],
        Place.OBJECTS_IN_PREFIX: lambda: [arns.objects(bucket, f"{prefix}/*" if prefix else "*")],
        Place.CATALOG: lambda: [arns.glue("catalog")],
        Place.DATABASES: lambda: [arns.glue(f"database/{name}") for name in databases],
        Place.TABLES: lambda: [arns.glue(f"table/{name}/*") for name in databases],
    }
