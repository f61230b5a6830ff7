"""Give the reason for each statement of the templates, those of CDK's own constructs included."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from infra.reasons import REASONS, find_reason
from lakewriter.policy.arns import name_principal

Raw = Mapping[str, Any]


def _list_actions(statement: Raw) -> list[str]:
    actions = statement["Action"]
    return actions if isinstance(actions, list) else [actions]


def _read_service(statement: Raw) -> str:
    principal = statement.get("Principal", {})
    return str(principal.get("Service", "")) if isinstance(principal, dict) else ""


def _is_tls_denial(statement: Raw) -> bool:
    return statement["Effect"] == "Deny" and "aws:SecureTransport" in statement.get("Condition", {}).get("Bool", {})


def _is_own_account(statement: Raw) -> bool:
    return _list_actions(statement) == ["kms:*"] and "AWS" in statement.get("Principal", {})


def _is_access_log_delivery(statement: Raw) -> bool:
    return _read_service(statement) == name_principal("logging.s3")


def _is_secret_key(statement: Raw) -> bool:
    through = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", "")
    return str(through).startswith("secretsmanager.")


def _is_bucket_emptying(statement: Raw) -> bool:
    return "s3:PutBucketPolicy" in _list_actions(statement)


def _is_service_role(statement: Raw) -> bool:
    return _list_actions(statement) == ["sts:AssumeRole"] and bool(_read_service(statement))


GENERATED: Final[tuple[tuple[Callable[[Raw], bool], str], ...]] = (
    (_is_tls_denial, REASONS["RequireTls"].statement),
    (_is_own_account, "The account's own IAM policies decide who else may use the key."),
    (_is_service_role, "This service of AWS does its work with the role."),
    (_is_secret_key, "Secrets Manager keeps the vendor user's access key under this key."),
    (_is_bucket_emptying, "deployment.destroy_data is on: a destroy empties the bucket first."),
    (_is_access_log_delivery, "S3 delivers the lake's access logs."),
)
"""The reasons for statements that CDK's own constructs make, which have no id."""


def find_statement_reason(statement: Raw) -> str:
    """Find the reason for ``statement``; blank if none is recorded."""
    named = find_reason(str(statement.get("Sid", "")))
    return named.statement if named else next((why for fits, why in GENERATED if fits(statement)), "")
