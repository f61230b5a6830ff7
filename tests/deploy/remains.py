"""What an account holds of the deployment, service by service."""

import re
from typing import Any

from tests.support.server import StrictAws

Remains = dict[str, list[str]]

_SUFFIX = re.compile(r"-[A-Za-z0-9]{12}$|-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|(/\d+)+$")
_OURS = re.compile(r"lakewriter-|acme-lake|supaflow")


def remains(aws: StrictAws) -> Remains:
    """Names without what differs from one deployment to the next, by service; services without any are left out.

    Managed policies are not looked at: moto has no deletion of them, and a role without them can do nothing.
    """
    found = {
        "applications": [
            each["name"]
            for each in aws.client("emr-serverless").list_applications()["applications"]
            if each["state"] != "TERMINATED"
        ],
        "buckets": _names(aws.client("s3").list_buckets()["Buckets"]),
        "databases": _names(aws.client("glue").get_databases()["DatabaseList"]),
        "keys": _keys(aws),
        "log groups": _names(aws.client("logs").describe_log_groups()["logGroups"], "logGroupName"),
        "objects": [key.rpartition("/")[0] for key in aws.objects("acme-lake") if "/_lakewriter/" not in key],
        "queues": [url.rpartition("/")[2] for url in aws.client("sqs").list_queues().get("QueueUrls", [])],
        "roles": _names(aws.client("iam").list_roles()["Roles"], "RoleName"),
        "schedules": _names(aws.client("scheduler").list_schedules()["Schedules"]),
        "state machines": _names(aws.client("stepfunctions").list_state_machines()["stateMachines"], "name"),
        "topics": [each["TopicArn"].rpartition(":")[2] for each in aws.client("sns").list_topics()["Topics"]],
    }
    return {kind: sorted(map(named, names)) for kind, names in found.items() if names}


def named(text: str) -> str:
    """A name or ARN without the suffix that CloudFormation gives, a stack's id, or an hour's folders."""
    return _SUFFIX.sub("", text)


def _keys(aws: StrictAws) -> list[str]:
    kms = aws.client("kms")
    states = [kms.describe_key(KeyId=each["KeyId"])["KeyMetadata"]["KeyState"] for each in kms.list_keys()["Keys"]]
    return ["alive" for state in states if state == "Enabled"]


def _names(entries: list[dict[str, Any]], name: str = "Name") -> list[str]:
    """Of the deployment; the account has others, of CDK's bootstrap."""
    return [entry[name] for entry in entries if _OURS.search(entry[name])]
