"""Why each statement is there, in the words of whoever reviews it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakewriter.dialects.registry import VENDOR_STATEMENTS

REASONS: Final = {
    "AlarmsOfThisAccount": "Alarms of this account tell the topic, and nobody else's.",
    **dict.fromkeys(VENDOR_STATEMENTS, "The vendor's own document, word for word, since it checks for it."),
    "AskLakeFormation": "Tables under Lake Formation; its grants say which.",
    "DecryptOutcomes": "An attempt's outcome is under the bucket's key.",
    "DeliverLoadLogs": "Step Functions has the loads' log delivered; that names no resources.",
    "EncryptEventLog": "The job's logs are under this key.",
    "EncryptLogGroups": "CloudWatch Logs keeps the pipeline's logs under this key.",
    "EncryptUndelivered": "The queue of starts that could not be delivered is under this key.",
    "EncryptJobLogs": "EMR Serverless encrypts the job's logs with this key.",
    "FindLogGroup": "EMR Serverless looks for its log group first.",
    "FindRunningLoads": "A start is refused while a load of this pipeline runs.",
    "FollowAndCancelJobRuns": "To see an attempt's end, and to cancel it when its load is stopped.",
    "HearOfJobRuns": "Step Functions hears of an attempt's end through this rule, which it makes itself.",
    "InspectBucket": "Where the bucket is, and which uploads are under way.",
    "KeepObjectsOfTables": "Append-only: no object of a table is replaced, whatever a role allows.",
    "KeepOutOfControlObjects": "The job's records of its loads are the job's alone.",
    "KeepUndelivered": "A start that cannot be delivered is kept for whoever looks into it.",
    "ListCheckpoints": "To find what the last run has read.",
    "ListSource": "To find the source's files.",
    "ListUnderPrefix": "To find the pipeline's own objects, and nothing above its prefix.",
    "NobodyYet": "Closed until Snowflake has told who it is.",
    "NotifyOfAlarms": "CloudWatch sends alarms to the encrypted topic.",
    "ReadArtifacts": "The job, its dependencies and its lake.yaml, and nothing else among the assets.",
    "ReadCatalog": "The vendor looks at the state of the catalog first.",
    "ReadObjects": "To read the tables' files.",
    "ReadOutcomes": "Whether another attempt can help is in what the last one left.",
    "ReadParameters": "The parameters that lake.yaml refers to, and no other.",
    "ReadSecrets": "The secrets that lake.yaml refers to, and no other.",
    "ReadSource": "To read what the tables are made of.",
    "ReadTables": "To look the tables up.",
    "RequireTls": "Nothing crosses the network in the clear.",
    "ResetTables": "deployment.allow_reset is on: the vendor may drop its tables.",
    "RunJobsAsTheJobRole": "The job runs with this role and with no other.",
    "StartJobRuns": "To start an attempt on this application.",
    "StartLoads": "The schedule starts loads.",
    "TakeDestinationRole": "The role of lake.yaml holds the permissions on the destination.",
    "TellOfLoads": "How loads ended, for the alarms.",
    "TraceLoads": "Step Functions traces the loads with X-Ray, which names no resources.",
    "TrustEmrServerless": "The job runs on EMR Serverless.",
    "TrustParty": "lake.yaml names this party.",
    "UseKeyThroughS3": "The bucket's objects are under this key; only S3 may use it for them.",
    "WriteCheckpoints": "To keep what has been read: the next run goes on from it.",
    "WriteLogs": "What driver and executors print.",
    "WriteObjects": "To write the tables' files; deleting, where it is listed, withdraws what cannot be completed.",
    "WriteTables": "To register tables, columns and partitions.",
}
"""By statement id; one of several numbered alike is looked up without its number too."""

Raw = Mapping[str, Any]


def _actions(statement: Raw) -> list[str]:
    actions = statement["Action"]
    return actions if isinstance(actions, list) else [actions]


def _service(statement: Raw) -> str:
    principal = statement.get("Principal", {})
    return str(principal.get("Service", "")) if isinstance(principal, dict) else ""


def _denies_without_tls(statement: Raw) -> bool:
    return statement["Effect"] == "Deny" and "aws:SecureTransport" in statement.get("Condition", {}).get("Bool", {})


def _of_own_account(statement: Raw) -> bool:
    return _actions(statement) == ["kms:*"] and "AWS" in statement.get("Principal", {})


def _access_logs(statement: Raw) -> bool:
    return _service(statement) == "logging.s3.amazonaws.com"


def _kept_secret(statement: Raw) -> bool:
    through = statement.get("Condition", {}).get("StringEquals", {}).get("kms:ViaService", "")
    return str(through).startswith("secretsmanager.")


def _emptying(statement: Raw) -> bool:
    return "s3:PutBucketPolicy" in _actions(statement)


def _service_role(statement: Raw) -> bool:
    return _actions(statement) == ["sts:AssumeRole"] and bool(_service(statement))


GENERATED: Final[tuple[tuple[Callable[[Raw], bool], str], ...]] = (
    (_denies_without_tls, REASONS["RequireTls"]),
    (_of_own_account, "The account's own IAM policies decide who else may use the key."),
    (_service_role, "This service of AWS does its work with the role."),
    (_kept_secret, "Secrets Manager keeps the vendor user's access key under this key."),
    (_emptying, "deployment.destroy_data is on: a destroy empties the bucket first."),
    (_access_logs, "S3 delivers the lake's access logs."),
)
"""For statements that CDK's own constructs make, which have no id."""


def reason(statement: Raw) -> str:
    """Why ``statement`` of a template is there; blank for one that nobody has given a reason."""
    sid = str(statement.get("Sid", ""))
    named = REASONS.get(sid) or REASONS.get(sid.rstrip("0123456789"))
    return named or next((why for fits, why in GENERATED if fits(statement)), "")
