"""Make ARNs of one partition, account and region by joining text, so that any part may be a CDK token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PARTITIONS: Final = {
    "cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b", "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f", "eusc-": "aws-eusc",
}  # fmt: skip
_SUFFIXES: Final = {
    "aws": "amazonaws.com", "aws-cn": "amazonaws.com.cn", "aws-us-gov": "amazonaws.com", "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov", "aws-iso-e": "cloud.adc-e.uk", "aws-iso-f": "csp.hci.ic.gov",
    "aws-eusc": "amazonaws.eu",
}  # fmt: skip
"""The domain of each partition, as botocore's endpoints have it."""
_REGIONAL: Final = frozenset({"logs"})
"""Services whose principal has the region and the partition's domain. Step Functions' had the region too once, and is
known by either: https://docs.aws.amazon.com/step-functions/latest/dg/procedure-create-iam-role.html."""


@dataclass(frozen=True)
class Arns:
    """The destination's partition, account and region; ``key`` is the ARN of the bucket's own KMS key, if any,
    ``catalog`` the account of the Data Catalog, where it is another one."""

    partition: str
    account: str
    region: str
    key: str | None = None
    catalog: str | None = None

    def bucket(self, name: str) -> str:
        """Return the ARN of a bucket."""
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, name: str, pattern: str = "*") -> str:
        """Return the ARN of objects of a bucket; ``pattern`` may have wildcards, see ``escape``."""
        return f"arn:{self.partition}:s3:::{name}/{pattern}"

    def glue(self, path: str) -> str:
        """Return the ARN of ``catalog``, ``database/NAME`` or ``table/DATABASE/NAME`` in the Data Catalog."""
        return f"arn:{self.partition}:glue:{self.region}:{self.catalog or self.account}:{path}"

    def secret(self, name: str) -> str:
        """Return the ARN of a secret by its name; Secrets Manager appends a hyphen and six random characters."""
        return self.regional("secretsmanager", f"secret:{escape(name)}-??????")

    def parameter(self, name: str) -> str:
        """Return the ARN of a parameter by its name, with or without a leading slash."""
        return self.regional("ssm", f"parameter/{escape(name.removeprefix('/'))}")

    def applications(self) -> str:
        """Return the ARN of every EMR Serverless application of the account: an id is known only after creation."""
        return self.regional("emr-serverless", "/applications/*")

    def role(self, name: str) -> str:
        """Return the ARN of a role; ``name`` has its path, without a leading slash."""
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"

    def log_group(self, name: str) -> str:
        """Return the ARN of a log group and of its streams."""
        return self.regional("logs", f"log-group:{name}:*")

    def root(self) -> str:
        """Return the ARN of the account as a principal."""
        return f"arn:{self.partition}:iam::{self.account}:root"

    def regional(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of the account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def find_url_suffix(region: str) -> str:
    """Find the domain of AWS's services in a region."""
    return _SUFFIXES[find_partition(region)]


def name_principal(service: str, region: str = "") -> str:
    """Name a service as policies have it; ``region`` is needed for those that have one in their name."""
    return f"{service}.{region}.{find_url_suffix(region)}" if service in _REGIONAL else f"{service}.amazonaws.com"


def is_service(principal: str) -> bool:
    """Return True for the principal of a service, of any partition."""
    return principal.endswith(tuple(f".{suffix}" for suffix in _SUFFIXES.values()))


def name_services(services: Sequence[str], region: str) -> str | list[str]:
    """Name services of a region as ``kms:ViaService`` has them; where the partition has another domain, by both, since
    no page says by which.

    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service
    """
    domains = dict.fromkeys(["amazonaws.com", find_url_suffix(region)])
    names = [f"{service}.{region}.{domain}" for service in services for domain in domains]
    return names if len(names) > 1 else names[0]


def find_partition(region: str) -> str:
    """Find the partition of a region; ``aws`` for most."""
    return next((partition for start, partition in _PARTITIONS.items() if region.startswith(start)), "aws")


def escape(text: str) -> str:
    """Escape the characters that have a meaning in the policy language: ``$``, ``*`` and ``?``.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    return "".join("${" + c + "}" if c in "$*?" else c for c in text)
