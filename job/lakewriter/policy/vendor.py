"""The vendors' own documents, word for word, for a vendor that checks them; the rest of this package knows better."""

from collections.abc import Callable, Mapping

from lakewriter.errors import SpecInvalidError
from lakewriter.policy import glue_statements as glue
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.specification import Spec
from lakewriter.spec.vendor_policy import Place, VendorStatement

_Places = Mapping[Place, Callable[[], list[str]]]


def make_vendor_statements(spec: Spec, arns: Arns) -> dict[str, list[Statement]]:
    """``S3`` and ``Glue`` as the vendor's set-up page has them, with its placeholders filled in."""
    policy = spec.vendor_policy
    if policy is None:
        raise SpecInvalidError(
            f"deployment.vendor_verbatim is on, and no policy of the vendor of {spec.dialect!r} is known.",
            remedy="Switch it off; it is for destinations whose vendor publishes one.",
        )
    places = _places(spec, arns)
    prefix = escape(spec.access.prefix)
    return {
        "S3": [_filled(statement, places, prefix) for statement in policy.s3],
        "Glue": [_filled(statement, places, prefix) for statement in policy.glue] if glue.used(spec) else [],
    }


def _filled(statement: VendorStatement, places: _Places, prefix: str) -> Statement:
    """A condition on ``s3:prefix`` denies all but listings always, as it does at the vendor's."""
    condition = {"StringLike": {"s3:prefix": [f"{prefix}/*"]}} if prefix and statement.prefix_only else None
    resources = [arn for place in statement.places for arn in places[place]()]
    return allow(statement.sid, statement.actions, resources, condition)


def _places(spec: Spec, arns: Arns) -> _Places:
    """Without a prefix the vendor's text would open every database of the account: the file's own stand for it."""
    bucket, prefix, below = spec.access.bucket, escape(spec.access.prefix), escape(spec.database_prefix)
    databases = [f"{below}*"] if below else list(dict.fromkeys(table.schema_name for table in spec.tables))
    return {
        Place.BUCKET: lambda: [arns.bucket(bucket)],
        Place.OBJECTS: lambda: [arns.objects(bucket)],
        Place.OBJECTS_IN_PREFIX: lambda: [arns.objects(bucket, f"{prefix}/*" if prefix else "*")],
        Place.CATALOG: lambda: [arns.glue("catalog")],
        Place.DATABASES: lambda: [arns.glue(f"database/{name}") for name in databases],
        Place.TABLES: lambda: [arns.glue(f"table/{name}/*") for name in databases],
    }
