"""The work of ``lakewriter policy``."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from lakewriter.cli.printed import PolicyReport
from lakewriter.cli.shared import print_json
from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.policy.arns import Arns, find_partition
from lakewriter.policy.bucket import find_encryption, make_bucket_policy
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.roles import Role, list_roles

_UNKNOWN: Final = "ACCOUNT-ID"


def print_documents(
    lake: Path,
    stage: str | None,
    who: str | None,
    *,
    account: str | None,
    kms_key: str | None,
    state_machine: Sequence[str],
    as_json: bool,
) -> int:
    """Print the documents of the roles of the file at ``lake``."""
    loaded = load(lake, stage=stage)
    region = _find_region(loaded)
    arns = Arns(find_partition(region), account or _find_account(loaded), region, kms_key)
    roles = _choose_roles(loaded, arns, Who(who) if who else None, stage=stage, machines=state_machine)
    encryption = find_encryption(loaded.deployment, arns)
    owner = None if who else make_bucket_policy(loaded.spec, arns, encryption=encryption)
    shown = {"roles": [vars(role) for role in roles], **({"bucket_policy": owner} if owner else {})}
    if _UNKNOWN in json.dumps(shown):
        raise SpecInvalidError(
            "these documents name the AWS account, and it is not known.",
            remedy="Give --account, or deployment.account in quotes.",
        )
    if as_json:
        print_json(PolicyReport(roles=tuple(roles), bucket_policy=owner))
        return EXIT_OK
    for role in roles:
        _show_role(role)
    if owner:
        _show("policy of the bucket, for its owner", owner)
    return EXIT_OK


def _find_region(lake: Lake) -> str:
    if not lake.spec.access.region:
        raise SpecInvalidError(
            "these documents name the bucket's region, and it is not known.", remedy="Give destination.region."
        )
    return lake.spec.access.region


def _find_account(lake: Lake) -> str:
    role = lake.spec.access.role_arn
    return lake.deployment.account or (role.split(":")[4] if role else _UNKNOWN)


def _choose_roles(lake: Lake, arns: Arns, who: Who | None, *, stage: str | None, machines: Sequence[str]) -> list[Role]:
    """Return the file's roles; if the file has none for ``who``, the documents that such a role would need."""
    roles = [role for role in list_roles(lake.spec, lake.deployment, arns) if who in (None, role.who)]
    if roles or who is None:
        return roles
    documents = make_documents(lake.spec, lake.deployment, who, arns, stage=stage, state_machines=machines)
    return [Role(who.value, who, documents, None)]


def _show_role(role: Role) -> None:
    for name, content in role.documents.items():
        _show(f"role {role.name!r} ({role.who}): policy {name}", content)
    if role.trust:
        _show(f"role {role.name!r} ({role.who}): trust policy", role.trust)


def _show(title: str, content: Any) -> None:
    click.secho(title, bold=True)
    click.echo(json.dumps(content, indent=2) + "\n")
