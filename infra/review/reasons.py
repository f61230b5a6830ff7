"""Give the reason for each statement, for the reviewer."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakewriter.dialects.registry import VENDOR_STATEMENTS

REASONS: Final = {
    "AlarmsOfThisAccount": "Only alarms of this account may publish to the topic.",
    **dict.fromkeys(VENDOR_STATEMENTS, "The vendor's own document, word for word, since it checks for it."),
    "AskLakeFormation": "Tables under Lake Formation; its grants say which.",
    "DecryptOutcomes": "Outcome files are encrypted with the bucket's key.",
    "DeliverLoadLogs": "Step Functions delivers the log of loads; the actions take no resources.",
    "EncryptEventLog": "The job's logs are encrypted with this key.",
    "EncryptLogGroups": "CloudWatch Logs keeps the pipeline's logs under this key.",
    "EncryptUndelivered": "The queue of starts that could not be delivered is encrypted with this key.",
    "EncryptJobLogs": "EMR Serverless encrypts the job's logs with this key.",
    "FindLogGroup": "EMR Serverless looks for its log group first.",
    "FindRunningLoads": "A start is refused while a load of this pipeline runs.",
    "FollowAndCancelJobRuns": "To see an attempt's end, and to cancel it when its load is stopped.",
    "HearOfJobRuns": "Step Functions is notified of an attempt's end by this rule, which it creates itself.",
    "InspectBucket": "Where the bucket is, and which uploads are under way.",
    "KeepObjectsOfTables": "Append-only: no object of a table is replaced, whatever a role allows.",
    "KeepOutOfControlObjects": "The job's records of its loads are the job's alone.",
    "KeepUndelivered": "A start that cannot be delivered is kept for whoever looks into it.",
    "ListCheckpoints": "To find what the last run has read.",
    "ListSource": "To find the source's files.",
    "ListUnderPrefix": "To find the pipeline's own objects, and nothing above its prefix.",
    "NobodyYet": "Nobody may assume the role until Snowflake's IAM user is known.",
    "NotifyOfAlarms": "CloudWatch sends alarms to the encrypted topic.",
    "ReadArtifacts": "The job, its dependencies and its lake.yaml, and nothing else among the assets.",
    "ReadCatalog": "The vendor reads the state of the catalog first.",
    "ReadObjects": "To read the tables' files.",
    "ReadOutcomes": "An attempt's outcome file says whether another attempt can help.",
    "ReadParameters": "The parameters that lake.yaml refers to, and no other.",
    "ReadSecrets": "The secrets that lake.yaml refers to, and no other.",
    "ReadSource": "To read the tables' sources.",
    "ReadTables": "To look the tables up.",
    "RequireTls": "Requests without TLS are denied.",
    "ResetTables": "deployment.allow_reset is on: the vendor may drop its tables.",
    "RunJobsAsTheJobRole": "The job runs with this role and with no other.",
    "StartJobRuns": "To start an attempt on this application.",
    "StartLoads": "The schedule starts loads.",
    "TakeDestinationRole": "The role of lake.yaml holds the permissions on the destination.",
    "TellOfLoads": "To publish how loads ended, for the alarms.",
    "TraceLoads": "Step Functions traces loads with X-Ray; the actions take no resources.",
    "TrustEmrServerless": "The job runs on EMR Serverless.",
    "TrustParty": "lake.yaml names this party.",
    "UseKeyThroughS3": "The bucket's objects are under this key; only S3 may use it for them.",
    "WriteCheckpoints": "To record what has been read: the next run continues from there.",
    "WriteLogs": "What driver and executors print.",
    "WriteObjects": "To write the tables' files; deleting, where it is listed, withdraws what cannot be completed.",
    "WriteTables": "To register tables, columns and partitions.",
}
"""By statement id; one of several numbered alike is looked up without its number too."""

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
    return _read_service(statement) == "logging.s3.amazonaws.com"


def _is_secret_key(statement: Raw) -> bool:
    through = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", "")
    return str(through).startswith("secretsmanager.")


def _is_bucket_emptying(statement: Raw) -> bool:
    return "s3:PutBucketPolicy" in _list_actions(statement)


def _is_service_role(statement: Raw) -> bool:
    return _list_actions(statement) == ["sts:AssumeRole"] and bool(_read_service(statement))


GENERATED: Final[tuple[tuple[Callable[[Raw], bool], str], ...]] = (
    (_is_tls_denial, REASONS["RequireTls"]),
    (_is_own_account, "The account's own IAM policies decide who else may use the key."),
    (_is_service_role, "This service of AWS does its work with the role."),
    (_is_secret_key, "Secrets Manager keeps the vendor user's access key under this key."),
    (_is_bucket_emptying, "deployment.destroy_data is on: a destroy empties the bucket first."),
    (_is_access_log_delivery, "S3 delivers the lake's access logs."),
)
"""The reasons for statements that CDK's own constructs make, which have no id."""


def find_reason(statement: Raw) -> str:
    """Find the reason for ``statement``; blank if none is recorded."""
    sid = str(statement.get("Sid", ""))
    named = REASONS.get(sid) or REASONS.get(sid.rstrip("0123456789"))
    return named or next((why for fits, why in GENERATED if fits(statement)), "")
