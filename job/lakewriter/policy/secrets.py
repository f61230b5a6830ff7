"""What the job's role needs beside the destination: the secrets it resolves, and the role it takes."""

import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import BaseModel

from lakewriter.policy.arns import Arns
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Spec

_SUFFIX: Final = re.compile(r"-[A-Za-z0-9]{6}")


def secrets(spec: Spec, arns: Arns) -> list[Statement]:
    """Exactly the secrets and parameters that the file refers to."""
    named = [*_secrets(spec), *([SecretText.parse(spec.rest_service.client_id)] if spec.rest_service else [])]
    references = dict.fromkeys(secret.reference for secret in named if secret.reference)
    kept = [_secret(name, arns) for kind, name in references if kind == "secret"]
    parameters = [_parameter(name, arns) for kind, name in references if kind == "ssm"]
    return [
        *([allow("ReadSecrets", ["secretsmanager:GetSecretValue"], list(dict.fromkeys(kept)))] if kept else []),
        *([allow("ReadParameters", ["ssm:GetParameter"], parameters)] if parameters else []),
    ]


def assume_role(spec: Spec) -> list[Statement]:
    """The one role that the file names."""
    role = spec.access.role_arn
    return [allow("TakeDestinationRole", ["sts:AssumeRole"], [role])] if role else []


def _secret(name: str, arns: Arns) -> str:
    """A secret's whole ARN ends in ``-`` and six letters; one without them is matched with any."""
    if not name.startswith("arn:"):
        return arns.secret(name)
    arn = ":".join(name.split(":")[:7])
    return arn if _SUFFIX.fullmatch(arn[-7:]) else f"{arn}-??????"


def _parameter(name: str, arns: Arns) -> str:
    """A parameter without the version or label that may follow it."""
    return ":".join(name.split(":")[:6]) if name.startswith("arn:") else arns.parameter(name.partition(":")[0])


def _secrets(value: Any) -> Iterator[SecretText]:
    """All that are anywhere below ``value``."""
    if isinstance(value, SecretText):
        yield value
    elif isinstance(value, BaseModel):
        yield from _secrets([getattr(value, name) for name in type(value).model_fields])
    elif isinstance(value, dict):
        yield from _secrets(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets(item)
