"""Point a pipeline at the S3 server on this machine: the same layout and files, and no account."""

from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.server import LocalServer
from lakewriter.spec.catalogs import GlueCatalog, IcebergCatalog, NoCatalog
from lakewriter.spec.specification import Spec


def localize(spec: Spec, server: LocalServer, *, holds_keys: bool = False) -> Spec:
    """Start the server, and return ``spec`` with it in place of S3 and with files in no catalog in place of Glue's.

    ``holds_keys`` is as in ``Running.make_access``. No role is assumed, and no secret of the destination is resolved.
    ``SPEC_INVALID`` for Iceberg, whose catalog has no stand-in.
    """
    if isinstance(spec.catalog, IcebergCatalog):
        raise SpecInvalidError(
            "--local has no Iceberg catalog, and this pipeline's tables are Iceberg's.",
            remedy="Try it with Parquet files in no catalog, or in a stage that has an account.",
        )
    access = server.start().make_access(spec.access.bucket, spec.access.prefix, holds_keys=holds_keys)
    access = access.model_copy(update={"key_names": spec.access.key_names})
    warnings = list(spec.warnings)
    if isinstance(spec.catalog, GlueCatalog):
        warnings.append("--local has no Glue: the files are the same, and no table or partition is registered")
    lineage = spec.lineage
    if lineage is not None and lineage.is_remote:
        warnings.append("--local sends no lineage: its tables are on this machine alone")
        lineage = None
    return spec.model_copy(
        update={"access": access, "catalog": NoCatalog(), "lineage": lineage, "warnings": tuple(warnings)}
    )
