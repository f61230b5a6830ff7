"""The catalogs that a pipeline's tables can be in."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field

from lakewriter.spec.access import SecretText
from lakewriter.spec.model import Model


@dataclass(frozen=True)
class Abilities:
    """The abilities of a bucket beside reading and writing whole objects, and completing uploads to keys that are free.

    Loads ask for these where they would look for what was left, take back what was written, or tell whose it is.
    """

    lists_objects: bool = True
    lists_uploads: bool = True
    deletes: bool = True
    """Without it, what no snapshot names is the service's to clear."""
    keeps_metadata: bool = True
    """Whether an object says which load wrote it; else its name does, which no other attempt gives."""
    puts_if_free: bool = True
    """Whether an object that is written whole may be written to a free key alone."""


EVERYTHING: Final = Abilities()
"""The abilities of a bucket of S3."""


class NoCatalog(Model):
    """Files only; ``by_hand`` where the vendor's document says how their readers register them."""

    in_glue: ClassVar[bool] = False
    lists_tables: ClassVar[bool] = False
    partition_key: ClassVar[None] = None
    strategy: ClassVar[str] = ""
    service: ClassVar[None] = None
    has_entries: ClassVar[bool] = True
    kind: Literal["none"] = "none"
    by_hand: bool = False

    @property
    def is_read_by_files(self) -> bool:
        """True if readers name the files, since neither a catalog nor a person lists the tables."""
        return not self.by_hand


class GlueCatalog(Model):
    """Hive-style tables in the Glue Data Catalog; ``strategy`` names how partitions are cut."""

    in_glue: ClassVar[bool] = True
    lists_tables: ClassVar[bool] = True
    is_read_by_files: ClassVar[bool] = False
    service: ClassVar[None] = None
    kind: Literal["glue"] = "glue"
    partition_key: str | None
    strategy: str = ""
    projection: Literal["entries", "only"] | None = None
    """Whether Athena computes the partitions: beside their entries in the catalog, or without any."""

    @property
    def has_entries(self) -> bool:
        """True if engines other than Athena find the partitions in the catalog."""
        return self.projection != "only"


class _Service(Model):
    """The catalog that lists Iceberg tables. An intent stores it, with the fields that a later release adds."""

    model_config = ConfigDict(extra="allow")

    in_glue: ClassVar[bool]
    """Whether the tables are in the Glue Data Catalog, whose permissions and databases they then need."""
    chooses_location: ClassVar[bool]
    """Whether the catalog decides where a table lies, and the layout does not."""
    aws_service: ClassVar[str]
    """The service of AWS that answers, by the name in its endpoints; blank for another server."""
    is_read_by_snowflake: ClassVar[bool]
    """Whether there are statements by which Snowflake reads the tables through the catalog."""
    takes_roles: ClassVar[bool]
    """Whether the catalog, and Snowflake's volume, reach the bucket by two roles of the stacks."""
    vends_credentials: ClassVar[bool]
    """Whether the catalog gives its clients credentials for a table's files."""
    makes_buckets: ClassVar[bool] = False
    """Whether each table lies in a bucket that the catalog has made for it."""
    abilities: ClassVar[Abilities] = EVERYTHING
    """The abilities of the bucket that a table lies in."""

    @property
    def table_bucket(self) -> str | None:
        """The ARN of the table bucket of Amazon S3 Tables that the tables lie in; None for files in a bucket."""
        return None

    @property
    def federated_catalog(self) -> str | None:
        """The catalog that the Glue Data Catalog shows the table bucket as."""
        return self.table_bucket and f"s3tablescatalog/{self.table_bucket.rpartition('/')[2]}"


class GlueService(_Service):
    """Iceberg tables in the Glue Data Catalog."""

    in_glue = True
    chooses_location = False
    aws_service = "glue"
    is_read_by_snowflake = False
    takes_roles = False
    vends_credentials = False

    kind: Literal["glue"] = "glue"

    def __str__(self) -> str:
        return "the Glue Data Catalog"

    @property
    def server(self) -> None:
        """See ``RestService``."""

    @property
    def rest(self) -> None:
        """See ``RestService``."""


class RestService(_Service):
    """An Iceberg REST catalog at ``uri``; ``warehouse`` is the catalog's name in it.

    A class derives from it for each way to sign in; no signature is kept, since credentials are renewed.
    """

    uri: str
    warehouse: str

    def __str__(self) -> str:
        return f"catalog {self.warehouse!r} at {self.uri}" if self.warehouse else f"the catalog at {self.uri}"

    @property
    def server(self) -> str | None:
        """The URL that others know the tables' catalog by; None for the Glue Data Catalog."""
        return None if self.in_glue else self.uri

    @property
    def rest(self) -> Self:
        """The service, if it is an Iceberg REST catalog; else None."""
        return self

    @property
    def texts(self) -> tuple[SecretText, ...]:
        """The fields of type ``str`` that may refer to a secret's value."""
        return ()

    @property
    def secret_server(self) -> str | None:
        """The URL of the server that is sent a secret of the file as it is; None where none is."""
        return None


class _ElsewhereService(RestService):
    """A REST catalog outside AWS's own, which decides where its tables lie."""

    in_glue = False
    chooses_location = True
    aws_service = ""
    is_read_by_snowflake = False
    takes_roles = False
    vends_credentials = True


class _ClientService(_ElsewhereService):
    """A REST catalog that takes OAuth2 client credentials.

    ``client_id`` may be a reference, as a secret may; the secret must be one.
    """

    is_read_by_snowflake = True

    client_id: str
    client_secret: SecretText
    scope: str

    @property
    def texts(self) -> tuple[SecretText, ...]:
        """See ``RestService``."""
        return (SecretText.parse(self.client_id),)

    @property
    def token_server(self) -> str:
        """The URL that gives tokens for client id and secret."""
        return f"{self.uri}/v1/oauth/tokens"

    @property
    def secret_server(self) -> str:
        """See ``RestService``."""
        return self.token_server


class PolarisService(_ClientService):
    """Snowflake Open Catalog, or another Polaris."""

    takes_roles = True

    kind: Literal["rest"] = "rest"


class OAuthService(_ClientService):
    """A REST catalog with a token server of its own, or at ``oauth2_server_uri``."""

    kind: Literal["oauth"] = "oauth"
    oauth2_server_uri: str | None = None

    @property
    def token_server(self) -> str:
        """See ``_ClientService``."""
        return self.oauth2_server_uri or super().token_server


class TokenService(_ElsewhereService):
    """A REST catalog that takes a bearer token as it is, such as a personal access token."""

    is_read_by_snowflake = True

    kind: Literal["token"] = "token"
    token: SecretText

    @property
    def secret_server(self) -> str:
        """See ``RestService``."""
        return self.uri


class OpenService(_ElsewhereService):
    """A REST catalog that asks nobody who they are."""

    kind: Literal["open"] = "open"


class SignedService(_ElsewhereService):
    """A REST catalog whose requests are signed by SigV4, for the service ``signing_name`` in the bucket's region."""

    kind: Literal["sigv4"] = "sigv4"
    signing_name: str


class GlueRestService(RestService):
    """The Iceberg REST endpoint of the Glue Data Catalog; ``warehouse`` is the catalog's account."""

    in_glue = True
    chooses_location = False
    aws_service = "glue"
    is_read_by_snowflake = False
    takes_roles = False
    vends_credentials = True

    kind: Literal["glue_rest"] = "glue_rest"
    signing_name: Literal["glue"] = "glue"


class S3TablesService(_ElsewhereService):
    """Amazon S3 Tables; ``warehouse`` is the ARN of the table bucket, and each table lies in a bucket of its own."""

    aws_service = "s3tables"
    is_read_by_snowflake = True
    vends_credentials = False
    makes_buckets = True
    # https://docs.aws.amazon.com/AmazonS3/latest/API/developing-s3-tables-APIs.html
    abilities = Abilities(
        lists_objects=False, lists_uploads=False, deletes=False, keeps_metadata=False, puts_if_free=False
    )

    kind: Literal["s3_tables"] = "s3_tables"
    signing_name: Literal["s3tables"] = "s3tables"

    @property
    def table_bucket(self) -> str:
        """See ``_Service``."""
        return self.warehouse


AnyRestService = (
    PolarisService | OAuthService | TokenService | OpenService | SignedService | GlueRestService | S3TablesService
)
"""Every REST catalog: a class for each way to sign in."""
IcebergService = Annotated[GlueService | AnyRestService, Field(discriminator="kind")]


FormatVersion = Literal[2, 3]
"""The format version that new Iceberg tables are made with."""
HIGHEST_OF_ATHENA: Final = 2
"""The highest format version that Athena reads: https://docs.aws.amazon.com/athena/latest/ug/querying-iceberg.html"""


class IcebergCatalog(Model):
    """Iceberg tables."""

    lists_tables: ClassVar[bool] = True
    is_read_by_files: ClassVar[bool] = False
    partition_key: ClassVar[None] = None
    strategy: ClassVar[str] = ""
    has_entries: ClassVar[bool] = True
    kind: Literal["iceberg"] = "iceberg"
    service: IcebergService
    format_version: FormatVersion = 2

    @property
    def in_glue(self) -> bool:
        """See ``_Service``."""
        return self.service.in_glue


Catalog = Annotated[NoCatalog | GlueCatalog | IcebergCatalog, Field(discriminator="kind")]
