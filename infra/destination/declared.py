"""The roles of ``lakewriter.policy`` with this stack's ARNs in them."""

from collections.abc import Mapping

from aws_cdk import Stack, Token
from aws_cdk import aws_ssm as ssm

from infra.destination.policies import Declared
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.roles import find_snowflake, list_roles
from lakewriter.spec.trust import Trust


def declare(settings: Settings, *, arns: Arns, shown: Arns, external_ids: Mapping[str, str]) -> list[Declared]:
    """The job's first; ``external_ids`` by role."""
    spec, deployment = settings.spec, settings.deployment
    texts = {entry.external_id: external_ids[entry.role] for entry in deployment.trust}
    made = list_roles(spec, deployment, arns, show=texts.__getitem__)
    return [Declared(*each) for each in zip(made, list_roles(spec, deployment, shown), strict=True)]


def external_ids(stack: Stack, settings: Settings) -> dict[str, str]:
    """By role, for every party outside; what is in an SSM parameter is looked up by every deployment."""
    snowflake = find_snowflake(settings.spec, settings.deployment)
    found = {entry.role: _external_id(stack, settings, entry) for entry in settings.deployment.trust}
    if snowflake:
        found |= {
            "snowflake-catalog": snowflake.catalog.external_id,
            "snowflake-compute": snowflake.compute.external_id,
        }
    return found


def _external_id(stack: Stack, settings: Settings, entry: Trust) -> str:
    kind, name = entry.external_id.reference or ("", "")
    if kind == "ssm":
        return ssm.StringParameter.value_for_string_parameter(stack, name)
    return settings.external_id(entry)


def readable(arns: Arns, *, key: str | None) -> Arns:
    """The same ARNs with tokens as cdk-nag and CloudFormation's console name them, such as ``<AWS::AccountId>``."""

    def name(value: str, pseudo: str) -> str:
        return f"<AWS::{pseudo}>" if Token.is_unresolved(value) else value

    return Arns(name(arns.partition, "Partition"), name(arns.account, "AccountId"), name(arns.region, "Region"), key)
