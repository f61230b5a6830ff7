"""Allow the job to resolve secrets, and to assume the destination's role."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pydantic import BaseModel

from lakewriter.policy.arns import Arns, name_services
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.access import SecretText
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec

_SUFFIX: Final = re.compile(r"-[A-Za-z0-9]{6}")


def allow_secrets(spec: Spec, deployment: Deployment, arns: Arns) -> list[Statement]:
    """Allow exactly the secrets and parameters that the file refers to, and their keys."""
    references = list_references(spec)
    secret_arns = [_make_secret_arn(name, arns) for kind, name in references if kind == "secret"]
    parameters = [_make_parameter_arn(name, arns) for kind, name in references if kind == "ssm"]
    return [
        *(
            [allow("ReadSecrets", ["secretsmanager:GetSecretValue"], list(dict.fromkeys(secret_arns)))]
            if secret_arns
            else []
        ),
        *([allow("ReadParameters", ["ssm:GetParameter"], parameters)] if parameters else []),
        *(_allow_keys(deployment.secret_kms_key_arns) if references else []),
    ]


def list_references(spec: Spec) -> list[tuple[str, str]]:
    """List every secret that the file refers to as ``(kind, name)``, each once."""
    named = [*_find_secrets(spec), *(spec.rest_service.texts if spec.rest_service else ())]
    return list(dict.fromkeys(secret.reference for secret in named if secret.reference))


def _allow_keys(keys: Sequence[str]) -> Iterator[Statement]:
    """Allow decrypting through Secrets Manager and Parameter Store, in each key's region.

    https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html
    """
    for number, key in enumerate(keys, start=1):
        region = key.split(":")[3]
        through = name_services(["secretsmanager", "ssm"], region)
        yield allow(f"UseKeyOfSecrets{number}", ["kms:Decrypt"], [key], {"StringEquals": {"kms:ViaService": through}})


def allow_assume_role(spec: Spec) -> list[Statement]:
    """Allow assuming the role that the file names."""
    role = spec.access.role_arn
    return [allow("TakeDestinationRole", ["sts:AssumeRole"], [role])] if role else []


def _make_secret_arn(name: str, arns: Arns) -> str:
    """Make the ARN of a secret; if the suffix of ``-`` and six characters is missing, any suffix matches."""
    if not name.startswith("arn:"):
        # Behind the name, the JSON key of the value.
        return arns.secret(name.rpartition(":")[0] or name)
    arn = ":".join(name.split(":")[:7])
    return arn if _SUFFIX.fullmatch(arn[-7:]) else f"{arn}-??????"


def _make_parameter_arn(name: str, arns: Arns) -> str:
    """Make the ARN of a parameter without the version or label that may follow its name."""
    return ":".join(name.split(":")[:6]) if name.startswith("arn:") else arns.parameter(name.partition(":")[0])


def _find_secrets(value: Any) -> Iterator[SecretText]:
    """Find every secret anywhere below ``value``."""
    if isinstance(value, SecretText):
        yield value
    elif isinstance(value, BaseModel):
        yield from _find_secrets([getattr(value, name) for name in type(value).model_fields])
    elif isinstance(value, dict):
        yield from _find_secrets(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _find_secrets(item)
