"""The catalogs that a pipeline's tables can be in."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from lakewriter.spec.access import SecretText
from lakewriter.spec.model import Model


class NoCatalog(Model):
    """Files only."""

    kind: Literal["none"] = "none"


class GlueCatalog(Model):
    """Hive-style tables in the Glue Data Catalog; ``strategy`` names how partitions are cut."""

    kind: Literal["glue"] = "glue"
    partition_key: str | None
    strategy: str = ""


class GlueService(Model):
    """Iceberg tables in the Glue Data Catalog."""

    chooses_location: ClassVar = False
    kind: Literal["glue"] = "glue"


class RestService(Model):
    """An Iceberg REST catalog with OAuth2 client credentials; ``warehouse`` is the catalog's name in it.

    ``client_id`` may be a reference, as a secret may; the secret must be one.
    """

    chooses_location: ClassVar = True
    kind: Literal["rest"] = "rest"
    uri: str
    warehouse: str
    client_id: str
    client_secret: SecretText
    scope: str


IcebergService = Annotated[GlueService | RestService, Field(discriminator="kind")]
"""``chooses_location`` where the catalog decides where a table lies, and the layout does not."""


class IcebergCatalog(Model):
    """Iceberg tables."""

    kind: Literal["iceberg"] = "iceberg"
    service: IcebergService


Catalog = Annotated[NoCatalog | GlueCatalog | IcebergCatalog, Field(discriminator="kind")]
