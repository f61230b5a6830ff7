"""Declare the roles of ``lakewriter.policy`` with this stack's ARNs."""

from collections.abc import Mapping

from aws_cdk import Stack, Token
from aws_cdk import aws_ssm as ssm

from infra.destination.policies import Declared
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.roles import find_snowflake, list_roles
from lakewriter.spec.access import SecretText


def declare(
    settings: Settings, *, arns: Arns, shown: Arns, external_ids: Mapping[str, tuple[str, ...]]
) -> list[Declared]:
    """Declare every role, the job's first; ``external_ids`` are by role."""
    spec, deployment = settings.spec, settings.deployment
    texts = {
        secret: text
        for entry in deployment.trust
        for secret, text in zip(entry.external_ids, external_ids[entry.role], strict=True)
    }
    made = list_roles(spec, deployment, arns, show=texts.__getitem__)
    readable = list_roles(spec, deployment, shown)
    return [Declared(role, same) for role, same in zip(made, readable, strict=True)]


def read_external_ids(stack: Stack, settings: Settings) -> dict[str, tuple[str, ...]]:
    """Read the external ids of every party by role, the present one first.

    CloudFormation resolves SSM parameters at each deployment.
    """
    snowflake = find_snowflake(settings.spec, settings.deployment)
    ids = {
        entry.role: tuple(_read_external_id(stack, settings, secret) for secret in entry.external_ids)
        for entry in settings.deployment.trust
    }
    if snowflake:
        ids |= {
            "snowflake-catalog": snowflake.catalog.external_ids,
            "snowflake-compute": snowflake.compute.external_ids,
        }
    return ids


def _read_external_id(stack: Stack, settings: Settings, secret: SecretText) -> str:
    kind, name = secret.reference or ("", "")
    if kind == "ssm":
        return ssm.StringParameter.value_for_string_parameter(stack, name)
    return settings.read_external_id(secret)


def make_readable(arns: Arns, *, key: str | None) -> Arns:
    """Make readable ARNs: tokens appear as in cdk-nag and CloudFormation's console, such as ``<AWS::AccountId>``."""

    def name(value: str, pseudo: str) -> str:
        return f"<AWS::{pseudo}>" if Token.is_unresolved(value) else value

    return Arns(name(arns.partition, "Partition"), name(arns.account, "AccountId"), name(arns.region, "Region"), key)
