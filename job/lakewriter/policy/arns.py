"""ARNs in one partition, account and region; only texts are put together, so any part may be a CDK token."""

from dataclasses import dataclass
from typing import Final

_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b"}


@dataclass(frozen=True)
class Arns:
    """Where the destination lies; ``key`` is the ARN of the bucket's KMS key, None where it has none of its own."""

    partition: str
    account: str
    region: str
    key: str | None = None

    def bucket(self, name: str) -> str:
        """A bucket itself."""
        return f"arn:{self.partition}:s3:::{name}"

    def objects(self, name: str, pattern: str = "*") -> str:
        """Objects of a bucket; ``pattern`` in the policy language, see ``literal``."""
        return f"arn:{self.partition}:s3:::{name}/{pattern}"

    def glue(self, path: str) -> str:
        """Something in the Data Catalog: ``catalog``, ``database/NAME``, ``table/DATABASE/NAME``."""
        return self._regional("glue", path)

    def secret(self, name: str) -> str:
        """A secret by its name; Secrets Manager ends each ARN in a hyphen and six letters of its own."""
        return self._regional("secretsmanager", f"secret:{literal(name)}-??????")

    def parameter(self, name: str) -> str:
        """A parameter by its name, with or without the slash in front."""
        return self._regional("ssm", f"parameter/{literal(name.removeprefix('/'))}")

    def applications(self) -> str:
        """Every EMR Serverless application of the account; ids are known only after one is made."""
        return self._regional("emr-serverless", "/applications/*")

    def role(self, name: str) -> str:
        """A role; ``name`` with its path, without the slash in front."""
        return f"arn:{self.partition}:iam::{self.account}:role/{name}"

    def root(self) -> str:
        """The account as a principal."""
        return f"arn:{self.partition}:iam::{self.account}:root"

    def _regional(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def partition_of(region: str) -> str:
    """``aws``, or whichever other partition a region is in."""
    return next((partition for start, partition in _PARTITIONS.items() if region.startswith(start)), "aws")


def literal(text: str) -> str:
    """``text`` with the characters escaped that the policy language gives a meaning to.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_variables.html
    """
    return "".join("${" + c + "}" if c in "$*?" else c for c in text)
