"""Keys of Open Catalog and locations of files, for every destination with Iceberg tables."""

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import AfterValidator

from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.places import require_plain, require_url
from lakewriter.naming import join_key
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import PolarisService
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout

OPEN_CATALOG_KEYS: Final = ("catalog_endpoint", "catalog_name", "client_id", "client_secret")
"""A destination in Open Catalog needs these keys."""
OPEN_CATALOG_ONLY: Final = (*OPEN_CATALOG_KEYS, "principal_role", "catalog_base_location")
"""No other destination has these keys."""


def _require_catalog_url(value: str) -> str:
    example = "https://org-account.snowflakecomputing.com/polaris/api/catalog"
    return value and require_url(value, example).rstrip("/")


def _require_reference(value: SecretText) -> SecretText:
    if value.reference is None:
        raise ValueError("expected a reference: ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}")
    return value


def _require_base(value: str) -> str:
    example = "s3://acme-lake/open/"
    scheme, separator, rest = value.partition("://")
    if value and (scheme != "s3" or not separator):
        raise ValueError(f"expected s3://bucket/folder, such as {example!r}")
    return value and f"s3://{require_plain(rest, example)}"


CatalogBase = Annotated[str, AfterValidator(_require_base)]
CatalogEndpoint = Annotated[str, AfterValidator(_require_catalog_url)]
SecretReference = Annotated[SecretText, AfterValidator(_require_reference)]
"""A secret by reference only: an intent has to name it for a recovery."""


def find_missing_keys(destination: Destination, needed: Sequence[str]) -> list[str]:
    """Return those of ``needed`` that are not given."""
    return [key for key in needed if not destination.read_key(key)]


def make_open_catalog(destination: Destination) -> PolarisService:
    """Return the catalog of a destination that has all of its keys."""
    destination.require_tls("catalog_endpoint")
    client_id = destination.read_key("client_id")
    return PolarisService.model_validate(
        {
            "uri": destination.read_key("catalog_endpoint"),
            "warehouse": destination.read_key("catalog_name"),
            "client_id": client_id and client_id.text,
            "client_secret": destination.read_key("client_secret"),
            "scope": f"PRINCIPAL_ROLE:{destination.read_key('principal_role')}",
        }
    )


def find_roots(destination: Destination, bucket: str) -> tuple[str, ...]:
    """Return the folder of ``bucket`` that the catalog keeps its tables in; none where the file does not say."""
    base = destination.read_key("catalog_base_location")
    if not base:
        return ()
    other, _, folder = base.removeprefix("s3://").partition("/")
    if other != bucket:
        raise FaultError(
            ("destination", "catalog_base_location"),
            f"it is in bucket {other!r}, and the destination's bucket is {bucket!r}.",
            remedy=f"Set {destination.key_names.bucket} to the bucket of the catalog's storage.",
        )
    return (join_key(folder),)


def lay_out_iceberg(path: str, depth: int, extension: str, *, is_named_alone: bool = False) -> Layout:
    """Return the layout of the table at ``path``, whose partition has ``depth`` fields. With ``is_named_alone`` nothing
    but an object's name says which attempt wrote it."""
    # With a UUID nobody has to look through all of a table's partitions for names that are taken.
    file = "part-{job_id}-{seq}-{uuid}" if depth or is_named_alone else "part-{job_id}-{seq}"
    return Layout(join_key(path, "data"), Template.parse(file + extension), depth)
