"""Define where a pipeline writes, and under which identity; secrets are stored by reference."""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from lakewriter.spec.model import Model

TRUSTED: Final = "LAKEWRITER_TRUSTED_ENDPOINTS"
"""The environment variable with the servers to which a file may send secrets by reference, separated by commas: a file
cannot allow itself to send a value of this machine to a server that it names."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# Hosts of S3, Glue and Snowflake themselves: nobody else sees what is sent there. Other hosts below amazonaws.com are
# customers' machines.
_VENDORS: Final = re.compile(
    r"(?:.+[.-])?s3[a-z0-9.-]*\.amazonaws\.com(?:\.cn)?|glue\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?"
    r"|.+\.snowflakecomputing\.(?:com|cn)",
    re.IGNORECASE,
)

_REFERENCE: Final = re.compile(r"\$\{(env|secret|ssm):([^{}]+)\}")


@dataclass(frozen=True)
class SecretText:
    """A secret by reference, ``${env:NAME}``, ``${secret:ARN[:json-key]}`` or ``${ssm:NAME}``, or a literal.

    Its ``repr`` and its JSON form show a reference, never a literal.
    """

    text: str

    @property
    def reference(self) -> tuple[str, str] | None:
        """``(kind, name)``, or None for a literal."""
        match = _REFERENCE.fullmatch(self.text)
        return (match[1], match[2]) if match else None

    def __repr__(self) -> str:
        return f"SecretText({self.text if self.reference else '***'})"

    __str__ = __repr__

    @classmethod
    def parse(cls, value: "str | SecretText") -> "SecretText":
        """Parse ``value`` as a secret; text that looks like a reference must be one."""
        if isinstance(value, SecretText):
            return value
        if "${" in value and not _REFERENCE.fullmatch(value):
            raise ValueError("expected ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}, and nothing around it")
        return cls(value)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls.parse,
            core_schema.union_schema([core_schema.is_instance_schema(cls), core_schema.str_schema(min_length=1)]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: value.text if value.reference else None
            ),
        )


def find_origin(url: str) -> str:
    """Return the scheme, host and port of a URL, in lower case."""
    parts = urlsplit(url.strip())
    return f"{parts.scheme}://{parts.netloc}".lower()


def is_trusted(url: str, trusted: str) -> bool:
    """Return whether secrets may be sent to the server at ``url``: one of this machine, of AWS or Snowflake, or one of
    those in ``trusted``, the value of ``TRUSTED``."""
    host = urlsplit(url).hostname or ""
    allowed = {find_origin(part) for part in trusted.split(",") if part.strip()}
    return host in LOOPBACK or _VENDORS.fullmatch(host) is not None or find_origin(url) in allowed


class KeyNames(Model):
    """The names of an ``Access``'s parts in the user's file, for messages."""

    bucket: str = "s3_bucket_name"
    region: str = "bucket_region"
    prefix: str = "s3_path_prefix"
    endpoint: str = "custom_s3_endpoint"
    role_arn: str = "iam_role_arn"
    external_id: str = "external_id"
    access_key_id: str = "access_key_id"
    secret_access_key: str = "secret_access_key"
    database_prefix: str = "glue_database_prefix"
    database: str = "destination_prefix"
    file_name: str | None = None
    """None where the user's file does not name files."""
    catalogs: tuple[tuple[str, str], ...] = (
        ("glue", "iceberg_catalog: GLUE"),
        ("rest", "iceberg_catalog: SNOWFLAKE_OPEN_CATALOG"),
    )
    """Each kind of Iceberg catalog that the destination has, with the key that chooses it."""

    def name_catalog(self, kind: str) -> str:
        """Return the key that chooses a kind of Iceberg catalog, the kind itself if the destination has none."""
        return dict(self.catalogs).get(kind, kind)


class Access(Model):
    """Access to the destination bucket. ``endpoint`` is a custom S3 endpoint; STS and Glue never use it."""

    bucket: str
    region: str
    prefix: str = ""
    endpoint: str | None = None
    role_arn: str | None = None
    external_id: SecretText | None = None
    access_key_id: SecretText | None = None
    secret_access_key: SecretText | None = None
    single_writer: bool = False
    role_wait_seconds: float = 60.0
    catalog_account: str | None = Field(None, exclude=True)
    """The account of the Glue Data Catalog, where it is another one. Not stored in intents: earlier releases refuse
    fields that they do not know, and a recovery publishes a load where today's lake.yaml says."""
    is_approved: bool = Field(False, exclude=True)
    """Whether the driver has found that the keys may be sent there: tasks have an environment of their own."""
    disk: str | None = Field(None, exclude=True)
    """The folder of the server's data, if it is this machine's: on a full disk the server says no reason."""
    key_names: KeyNames = Field(KeyNames(), exclude=True)
    """Not stored in intents: the messages of a recovery are read beside today's lake.yaml."""

    @property
    def explicit(self) -> bool:
        """Return whether the file names a role or keys."""
        return bool(self.role_arn or self.access_key_id)

    @property
    def checksum_algorithm(self) -> str | None:
        """None for S3-compatible stores, which reject the SDK's default checksums."""
        return None if self.endpoint else "CRC32"

    def approve(self) -> "Access":
        """Return the access for tasks, whose driver has signed in with it."""
        return self.model_copy(update={"is_approved": True})
