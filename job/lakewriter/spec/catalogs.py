"""The catalogs that a pipeline's tables can be in."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

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


class _Service(Model):
    """Where Iceberg tables are listed. An intent stores it, with the fields that a later release adds."""

    model_config = ConfigDict(extra="allow")

    chooses_location: ClassVar[bool]
    """Whether the catalog decides where a table lies, and the layout does not."""


class GlueService(_Service):
    """Iceberg tables in the Glue Data Catalog."""

    chooses_location = False
    kind: Literal["glue"] = "glue"


class RestService(_Service):
    """An Iceberg REST catalog at ``uri``; ``warehouse`` is the catalog's name in it.

    A class derives from it for each way to sign in.
    """

    chooses_location = True
    uri: str
    warehouse: str

    def __str__(self) -> str:
        return f"catalog {self.warehouse!r} at {self.uri}"

    @property
    def texts(self) -> tuple[SecretText, ...]:
        """The fields of type ``str`` that may refer to a secret's value."""
        return ()


class OAuthService(RestService):
    """A REST catalog that takes OAuth2 client credentials, as Snowflake Open Catalog does.

    ``client_id`` may be a reference, as a secret may; the secret must be one.
    """

    kind: Literal["rest"] = "rest"
    client_id: str
    client_secret: SecretText
    scope: str

    @property
    def texts(self) -> tuple[SecretText, ...]:
        """See ``RestService``."""
        return (SecretText.parse(self.client_id),)


AnyRestService = OAuthService
IcebergService = Annotated[GlueService | AnyRestService, Field(discriminator="kind")]


class IcebergCatalog(Model):
    """Iceberg tables."""

    kind: Literal["iceberg"] = "iceberg"
    service: IcebergService


Catalog = Annotated[NoCatalog | GlueCatalog | IcebergCatalog, Field(discriminator="kind")]
