"""Define who from outside may take a role on the destination, and what identifies them."""

import re
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from lakewriter.naming import describe_unfit_segment
from lakewriter.spec.access import SecretText
from lakewriter.spec.model import FileModel, require_one

VENDORS: Final = {
    "supaflow": "arn:aws:iam::805595753828:root",
    "airbyte-cloud": "arn:aws:iam::094410056844:user/delegated_access_user",
    "heropixel-cloud": "arn:aws:iam::094410056844:user/delegated_access_user",
}
"""Whom each vendor's document has its customers trust."""

OWN_ROLES: Final = frozenset({"job", "user", "snowflake-catalog", "snowflake-compute", "optimizers"})

EXTERNAL_ID: Final = re.compile(r"[\w+=,.@:/-]{2,1224}", re.ASCII)
"""https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html"""
ALPHABET: Final = "2 to 1224 letters, digits and +=,.@:/-_ without spaces around them"

_TABLE: Final = re.compile(r"[^*?/]*[^*?/.](\.\*)?")
_DATABASE: Final = re.compile(r"[a-z0-9_]{1,254}\*?")
_PATH: Final = re.compile(r"/?[^*?:]+")
_LF_TAG: Final = re.compile(r"[a-z0-9_.:/=+@%-]([a-z0-9 _.:/=+@%-]{0,126}[a-z0-9_.:/=+@%-])?")
_MOST_LF_TAGS: Final = 5
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-lakeformation-principalpermissions-lftagpolicyresource.html"""
_LABEL: Final = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
_SUBDOMAIN: Final = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
"""Names as Kubernetes has them: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"""
_PRINCIPAL: Final = re.compile(r"arn:aws[a-z-]*:(iam|sts)::\d{12}:(root|(user|role|assumed-role)/[\w+=,.@/-]+)")


def _require_table(value: str) -> str:
    if not _TABLE.fullmatch(value):
        raise ValueError("expected a table such as 'schema.table', or all of a schema's: 'schema.*'")
    return value


def _require_folder(value: str) -> str:
    parts = value.strip("/").split("/")
    if not _PATH.fullmatch(value) or "" in parts or describe_unfit_segment(value):
        raise ValueError(
            "expected a folder of the party's own: 'crm' below the destination's prefix, or '/crm' below the bucket"
        )
    return value


TableName = Annotated[str, AfterValidator(_require_table)]


def _require_database(value: str) -> str:
    if not _DATABASE.fullmatch(value):
        raise ValueError("expected a Glue database such as 'crm', or all that begin so: 'crm_*'")
    return value


def _require_distinct(external_ids: Sequence[object]) -> None:
    if len({*external_ids}) < len(external_ids):
        raise ValueError("'earlier_external_ids' has an id twice, or that of 'external_id'; expected different ones")


def _require_lf_tags(value: dict[str, str]) -> dict[str, str]:
    if not 1 <= len(value) <= _MOST_LF_TAGS or not all(map(_LF_TAG.fullmatch, (*value, *value.values()))):
        raise ValueError(
            f"expected one to {_MOST_LF_TAGS} LF-tags, each a key and a value in lower-case letters, digits, blanks "
            "and _.:/=+-@%"
        )
    return value


LfTags = Annotated[dict[str, str], AfterValidator(_require_lf_tags)]
"""LF-tags of Lake Formation: one value for each key."""
Folder = Annotated[str, AfterValidator(_require_folder)]
Database = Annotated[str, AfterValidator(_require_database)]


class Party(FileModel):
    """What a party from outside reaches: its own ``tables`` or ``paths``; with neither, everything under the
    destination's prefix except the job's own objects."""

    access: Literal["write", "read", "load"] = "write"
    """What the party may do: ``write`` its tables or folders, only ``read`` them, or ``load``: run this pipeline
    elsewhere."""
    tables: tuple[TableName, ...] = ()
    """The party's tables by their names at the destination: ``schema.table``, or ``schema.*`` for a whole schema."""
    paths: tuple[Folder, ...] = ()
    """The party's folders below the destination's prefix, or below the bucket with a slash before them. They give no
    rights in a catalog."""
    databases: tuple[Database, ...] = ()
    """The Glue databases of the party's own, beside ``paths`` or ``tables``: ``crm``, or ``crm_*`` for all that begin
    so."""

    lf_tags: LfTags | None = None
    """LF-tags by which Lake Formation grants the party its rights, in place of the names of databases: on every
    database and table that has all of them. Needs ``deployment.lake_formation``."""
    any_encryption: bool = False
    """Lets the party put objects under another key than the bucket's, in a bucket with a KMS key."""

    @property
    def follows(self) -> str | None:
        """The vendor whose page lists what the party calls: blank for the destination's own, None for nobody."""
        return ""

    @model_validator(mode="after")
    def _one_contract(self) -> "Party":
        if self.tables and self.paths:
            raise ValueError("expected either 'tables' or 'paths', got both")
        if self.access == "load" and (self.tables or self.paths or self.databases):
            raise ValueError("'access: load' does all that a load does; leave out 'tables', 'paths' and 'databases'")
        return self


class KeyedParty(Party):
    """What a user with an access key reaches."""

    vendor: Literal["supaflow", "airbyte-cloud", "heropixel-cloud", "estuary"] | None = None
    """The vendor that has the key; its page lists what it calls. By default the destination's own vendor."""

    @property
    def follows(self) -> str | None:
        """As named, or the destination's own."""
        return self.vendor or ""


class ServiceAccount(FileModel):
    """The pods of one service account of Kubernetes."""

    namespace: str = Field(pattern=_LABEL)
    """The namespace of the service account."""
    service_account: str = Field(pattern=_SUBDOMAIN)
    """The service account that the pods run with."""


class PodIdentity(ServiceAccount):
    """Pods that get the role by EKS Pod Identity."""

    cluster: str = Field(pattern=r"^arn:aws[a-z-]*:eks:[a-z0-9-]+:\d{12}:cluster/[0-9A-Za-z][\w-]{0,99}$")
    """The ARN of the cluster that the pods run in."""


class WebIdentity(ServiceAccount):
    """Pods that get the role by IAM roles for service accounts."""

    provider: str = Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:oidc-provider/[\w.-]+(/[\w.-]+)*$")
    """The ARN of the cluster's OpenID Connect provider in IAM."""

    @property
    def issuer(self) -> str:
        """Return the issuer of the pods' tokens, without ``https://``."""
        return self.provider.partition(":oidc-provider/")[2]


class HostIdentity(FileModel):
    """The machine that a vendor's product runs on, which has its rights by itself, without an external id."""

    ec2: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")
    """The ARN of the role in the instance profile of an EC2 instance. The stack attaches the party's policies to it."""
    eks_pod_identity: PodIdentity | None = None
    """Pods in EKS that an association of EKS Pod Identity gives the role that the stack makes."""
    irsa: WebIdentity | None = None
    """Pods whose service account is annotated with the role that the stack makes."""

    @model_validator(mode="after")
    def _one_way(self) -> "HostIdentity":
        require_one(
            ec2=self.ec2 is not None, eks_pod_identity=self.eks_pod_identity is not None, irsa=self.irsa is not None
        )
        return self


class Trust(Party):
    """A party from outside that gets a role of its own on the destination."""

    vendor: Literal["supaflow", "airbyte-cloud", "heropixel-cloud"] | None = None
    """The vendor whose page says what is allowed. Without ``principal`` and ``identity`` it also takes the role."""
    principal: str | None = None
    """The ARN of the role, user or account that takes the role."""
    identity: HostIdentity | None = None
    """The machine of your own that the vendor's product runs on, and that has the role without an external id."""
    service: Literal["redshift"] | None = None
    """The AWS service that takes the role, without ``vendor``, ``principal`` and ``identity``: ``redshift``, for
    warehouses of this account that the role is attached to. It only reads. Without ``external_id`` every user of such a
    warehouse may use the role; with it the one whose ARN it is,
    ``arn:aws:redshift:REGION:ACCOUNT:dbuser:WAREHOUSE/USER``."""
    external_id: SecretText | None = None
    """The external id that the party gives when it takes the role: as text, ``${ssm:NAME}`` or ``${env:NAME}``. The
    trust policy shows it. Required unless ``identity`` or ``service`` is given."""
    earlier_external_ids: tuple[SecretText, ...] = ()
    """External ids that the party may still give, while it changes to ``external_id``: one role has them all. Remove
    them once it gives the new one."""
    name: str | None = Field(None, pattern=r"^[a-z][a-z0-9-]{0,31}$")
    """Tells the roles of two parties apart. By default the vendor's or the service's name."""

    @field_validator("name")
    @classmethod
    def _not_ours(cls, value: str | None) -> str | None:
        if value in OWN_ROLES:
            raise ValueError(f"{value!r} is what a role of the pipeline's own is called; take another")
        return value

    @field_validator("principal")
    @classmethod
    def _one_principal(cls, value: str | None) -> str | None:
        if value is not None and not _PRINCIPAL.fullmatch(value):
            raise ValueError("expected the ARN of one role, user or account root, without '*'")
        return value

    @field_validator("external_id", "earlier_external_ids")
    @classmethod
    def _alphabet(cls, value: SecretText | tuple[SecretText, ...] | None) -> SecretText | tuple[SecretText, ...] | None:
        for secret in value if isinstance(value, tuple) else filter(None, (value,)):
            if secret.reference is None and not EXTERNAL_ID.fullmatch(secret.text):
                raise ValueError(f"expected {ALPHABET}")
            if secret.reference and secret.reference[0] == "secret":
                raise ValueError("a trust policy shows its external id; expected a literal, ${ssm:NAME} or ${env:NAME}")
        return value

    @model_validator(mode="after")
    def _someone(self) -> "Trust":
        _require_distinct(self.external_ids)
        if self.service:
            self._require_service()
            return self
        if self.principal and self.identity:
            raise ValueError("expected either 'principal' or 'identity', got both")
        if not (self.vendor or self.principal or self.identity):
            raise ValueError("expected 'vendor', 'principal', 'identity' or 'service'")
        if self.vendor is None and self.name is None:
            raise ValueError(f"{'principal' if self.principal else 'identity'!r} needs a 'name' for its role")
        if self.identity and self.external_ids:
            raise ValueError("'external_id' is given by who takes a role; leave it out beside 'identity'")
        if not self.identity and self.external_id is None:
            raise ValueError("'external_id' is required: the party gives it when it takes the role")
        return self

    def _require_service(self) -> None:
        """Raise ``ValueError`` unless a service is the only one that takes the role, and reads."""
        if self.vendor or self.principal or self.identity:
            raise ValueError("'service' takes the role; leave out 'vendor', 'principal' and 'identity'")
        if self.access != "read":
            raise ValueError(f"service {self.service!r} only reads: set access: read")

    @property
    def follows(self) -> str | None:
        """The vendor whose page lists what the party calls; None for one that names no vendor."""
        return self.vendor

    @property
    def external_ids(self) -> tuple[SecretText, ...]:
        """All that the party may give, the present one first; none for an ``identity``."""
        return (*((self.external_id,) if self.external_id else ()), *self.earlier_external_ids)

    @property
    def role(self) -> str:
        """The name that tells this role apart from the others."""
        return self.name or str(self.service or self.vendor)

    @property
    def arn(self) -> str:
        """Whom the role trusts, if it has no ``identity``."""
        return self.principal or VENDORS[str(self.vendor)]

    @property
    def host(self) -> str | None:
        """The ARN of a role that is there already and that the party's policies are attached to."""
        return self.identity.ec2 if self.identity else None


class SnowflakePrincipal(FileModel):
    """The identity that Snowflake prints once it knows the role. Until then nobody may take the role."""

    iam_user_arn: str | None = None
    """The user that Snowflake takes the role with: ``STORAGE_AWS_IAM_USER_ARN`` of DESC EXTERNAL VOLUME, or the
    catalog's IAM user ARN."""
    external_id: str = "lakewriter"
    """The external id that the statements of ``lakewriter queries`` give to Snowflake."""
    earlier_external_ids: tuple[str, ...] = ()
    """External ids that Snowflake may still give, until its volume or catalog has ``external_id``."""

    @field_validator("external_id", "earlier_external_ids")
    @classmethod
    def _alphabet(cls, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
        for text in value if isinstance(value, tuple) else (value,):
            if not EXTERNAL_ID.fullmatch(text):
                raise ValueError(f"expected {ALPHABET}")
        return value

    @model_validator(mode="after")
    def _distinct(self) -> "SnowflakePrincipal":
        _require_distinct(self.external_ids)
        return self

    @property
    def external_ids(self) -> tuple[str, ...]:
        """All that Snowflake may give, the present one first."""
        return self.external_id, *self.earlier_external_ids

    @field_validator("iam_user_arn")
    @classmethod
    def _one_user(cls, value: str | None) -> str | None:
        if value is not None and not _PRINCIPAL.fullmatch(value):
            raise ValueError("expected the ARN that Snowflake printed, without '*'")
        return value


class Snowflake(FileModel):
    """Two roles: one for Open Catalog, which writes metadata, and one for compute, which only reads."""

    catalog: SnowflakePrincipal = SnowflakePrincipal()
    """Open Catalog, which writes the tables' metadata."""
    compute: SnowflakePrincipal = SnowflakePrincipal()
    """Snowflake's compute, which only reads."""
