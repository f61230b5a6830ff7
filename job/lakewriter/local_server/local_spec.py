"""Point a pipeline at the S3 server on this machine: the same layout and files, and no account."""

from lakewriter.local_server.catalog_server import RunningCatalog
from lakewriter.local_server.server import KEY_VARIABLE, SECRET_VARIABLE, LocalServer
from lakewriter.naming import join_key
from lakewriter.spec.access import Access, SecretText
from lakewriter.spec.catalogs import Catalog, IcebergCatalog, NoCatalog, PolarisService
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.specification import Spec


def localize(spec: Spec, server: LocalServer, *, holds_keys: bool = False) -> Spec:
    """Start the server, and return ``spec`` with it in place of S3, with its Iceberg catalog in place of another one,
    and with files in no catalog in place of Glue's.

    ``holds_keys`` is as in ``Running.make_access``. No role is assumed, and no secret of the destination is resolved.
    """
    access = server.start().make_access(spec.access.bucket, spec.access.prefix, holds_keys=holds_keys)
    access = access.model_copy(update={"key_names": spec.access.key_names, "disk": str(server.folder)})
    warnings = list(spec.warnings)
    catalog: Catalog = NoCatalog()
    roots = spec.roots
    if spec.service is not None:
        # The catalog puts every table below its warehouse, whatever base location the other one has.
        catalog, roots = IcebergCatalog(service=_make_service(server.start_catalog(), access)), ()
        warnings.append(
            f"--local: the tables are in an Iceberg catalog of this machine, and nothing is asked of {spec.service}"
        )
    elif spec.in_glue:
        warnings.append("--local has no Glue: the files are the same, and no table or partition is registered")
    maintenance = spec.maintenance
    if maintenance is not None and maintenance.optimizer_role is not None:
        warnings.append("--local has none of Glue's optimizers: the tables' properties say what to expire")
        maintenance = _without_optimizers(maintenance)
    lineage = spec.lineage
    if lineage is not None and lineage.is_remote:
        warnings.append("--local sends no lineage: its tables are on this machine alone")
        lineage = None
    return spec.model_copy(
        update={
            "access": access,
            "catalog": catalog,
            "lineage": lineage,
            "maintenance": maintenance,
            "roots": roots,
            "warnings": tuple(warnings),
        }
    )


def _make_service(running: RunningCatalog, access: Access) -> PolarisService:
    """Return the catalog as its clients know it: they sign in with the keys of the S3 server.

    The keys are references in any case: only this process opens the catalog, and its environment has them.
    """
    return PolarisService(
        uri=running.uri,
        warehouse=join_key(access.bucket, access.prefix),
        client_id=f"${{env:{KEY_VARIABLE}}}",
        client_secret=SecretText(f"${{env:{SECRET_VARIABLE}}}"),
        scope="PRINCIPAL_ROLE:ALL",
    )


def _without_optimizers(maintenance: Maintenance) -> Maintenance:
    by = "run" if maintenance.by == "run" else "command"
    update = {"optimizer_role": None, "by": by, "compact": by == "run", "delete_orphans_days": None}
    return maintenance.model_copy(update=update)
