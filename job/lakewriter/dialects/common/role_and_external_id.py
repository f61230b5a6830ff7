"""Validate the role's ARN and the external id of a destination, whatever its keys for them are called."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

from lakewriter.dialects.common.places import require_match
from lakewriter.spec.access import SecretText
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")


def _require_role(value: str) -> str:
    # A field of a form that was left empty counts as absent.
    return value and require_match(_ROLE, value, "a role's ARN such as 'arn:aws:iam::123456789012:role/LakeWriter'")


def _require_external_id(value: SecretText) -> SecretText:
    """Return ``value``; ``ValueError`` where it is written out and STS does not allow it."""
    if value.reference is None:
        require_match(EXTERNAL_ID, value.text, ALPHABET)
    return value


RoleArn = Annotated[str, AfterValidator(_require_role)]
ExternalId = Annotated[SecretText, AfterValidator(_require_external_id)]
