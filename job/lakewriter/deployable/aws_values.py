"""Refuse values that AWS refuses and that no model of AWS describes: one table of rules with their pages."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from lakewriter.deployable.lake_file import walk_scalars
from lakewriter.deployable.staged_lake import StagedLake
from lakewriter.policy.arns import find_partition

_MOST_TAGS: Final = 50
_OWN_TAGS: Final = 3
"""Tags that a job run and some resources have besides those of the file."""
_LONGEST_ARN: Final = 256
"""Characters of a role's ARN that Step Functions takes, the fewest of all services that are given one."""
_LONGEST_NAME: Final = 64
_LOCAL: Final = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_EMAIL: Final = re.compile(rf"{_LOCAL}(\.{_LOCAL})*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{{2,}}")
_SUBNET, _GROUP = (re.compile(rf"{kind}-([0-9a-f]{{8}}|[0-9a-f]{{17}})") for kind in ("subnet", "sg"))
_PRINCIPALS: Final = "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_create_for-user_externalid.html"
_TAGS: Final = "https://docs.aws.amazon.com/tag-editor/latest/userguide/tagging.html"
_KEYS_OF_REGION: Final = (
    "deployment.existing.kms_key_arn", "deployment.artifact_kms_key_arn", "deployment.earlier_kms_key_arns.*",
    "deployment.catalog_kms_key_arn",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """What is expected of the values of some keys; ``is_right`` is asked for each of them."""

    keys: tuple[str, ...]
    """With ``*`` for the number of an entry."""
    is_right: Callable[[str, StagedLake], bool]
    expected: str
    """May name the ``{region}``, the ``{account}``, and the ``{room}`` that a role's ARN has for its path."""
    page: str


RULES: Final = (
    Rule(
        ("deployment.alarms.email",),
        lambda value, _: len(value) <= 320 and _EMAIL.fullmatch(value) is not None,
        "one address alone, such as data@example.org",
        "https://docs.aws.amazon.com/sns/latest/dg/sns-email-notifications.html",
    ),
    Rule(
        ("deployment.alarms.topic_arn",),
        lambda value, settings: value.split(":")[3] == settings.spec.access.region,
        "a topic of {region}: an alarm notifies topics of its own region",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html",
    ),
    Rule(
        ("deployment.alarms.topic_arn",),
        lambda value, _: not value.endswith(".fifo"),
        "a standard topic: an alarm notifies no FIFO topic",
        "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html",
    ),
    Rule(
        _KEYS_OF_REGION,
        lambda value, settings: value.split(":")[3] == settings.spec.access.region,
        "a key of {region}: S3, SNS, CloudWatch Logs and Glue take keys of their own region",
        "https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html",
    ),
    Rule(
        ("deployment.network.subnet_ids.*",),
        lambda value, _: _SUBNET.fullmatch(value) is not None,
        "a subnet's id, such as subnet-0a1b2c3d",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html",
    ),
    Rule(
        ("deployment.network.security_group_ids.*",),
        lambda value, _: _GROUP.fullmatch(value) is not None,
        "a security group's id, such as sg-0a1b2c3d",
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html",
    ),
    Rule(
        ("deployment.operators.*",),
        lambda value, settings: _find_account(settings) in (None, value.split(":")[4]),
        "a role or user of the account {account}: operators take their role without an external id",
        _PRINCIPALS,
    ),
    Rule(
        (
            "deployment.trust.*.identity.ec2",
            "deployment.trust.*.identity.eks_pod_identity.cluster",
            "deployment.trust.*.identity.irsa.provider",
        ),
        lambda value, settings: _find_account(settings) in (None, value.split(":")[4]),
        "one of the account {account}: a machine has a role of its own account. For one elsewhere, leave out identity, "
        "and give its role as principal, with an external id",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_switch-role-ec2.html",
    ),
    Rule(
        ("deployment.existing.job_role_arn", "deployment.permissions_boundary_arn"),
        lambda value, settings: value.split(":")[4] in {"aws", settings.deployment.account or value.split(":")[4]},
        "one of the account {account}: roles and policies are used within their account",
        "https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html",
    ),
    Rule(
        ("deployment.role_path",),
        lambda value, settings: len(_make_longest_role(value, settings)) <= _LONGEST_ARN,
        f"at most {{room}} characters: the ARN of a role may have {_LONGEST_ARN}, its name {_LONGEST_NAME}",
        "https://docs.aws.amazon.com/step-functions/latest/apireference/API_CreateStateMachine.html",
    ),
    Rule(
        ("deployment.tags.{key}",),
        lambda value, _: not value.lower().startswith("aws:"),
        "a key that does not begin with 'aws:', which is AWS's own",
        _TAGS,
    ),
    Rule(
        ("deployment.tags.*",),
        lambda value, _: value.strip() == value != "",
        "a value, without spaces around it: Step Functions and CloudWatch take no empty one",
        "https://docs.aws.amazon.com/step-functions/latest/apireference/API_Tag.html",
    ),
)
"""Each value is named by its key in lake.yaml. What models say is in ``infra.review.limits``."""


def check_values(settings: StagedLake) -> Iterator[str]:
    """Refuse each value that a rule of the table, or the number and the cases of tags, does not allow."""
    access, deployment = settings.spec.access, settings.deployment
    if access.endpoint is not None or not access.region:
        return
    values = list(walk_scalars(deployment.model_dump(mode="json", exclude={"stages"}), "deployment"))
    values += [("deployment.tags.{key}", tag) for tag in deployment.tags]
    facts = {
        "region": access.region,
        "account": _find_account(settings),
        "room": _LONGEST_ARN - len(_make_longest_role("", settings)),
    }
    for rule in RULES:
        for key, value in values:
            if isinstance(value, str) and _is_named(key, rule) and not rule.is_right(value, settings):
                shown = f"deployment.tags.{value}" if key.endswith("{key}") else key
                yield f"{shown}: got {_show(value)}; expected {rule.expected.format(**facts)} ({rule.page})."
    yield from _check_tags(deployment.tags)


def _is_named(key: str, rule: Rule) -> bool:
    return any(fnmatchcase(key, name) for name in rule.keys) and not (key.endswith("{key}") and key not in rule.keys)


def _show(value: str) -> str:
    return repr(value if len(value) <= 100 else f"{value[:100]}...")


def _find_account(settings: StagedLake) -> str | None:
    """Find the account that the stacks are in; None if the templates fit any, and nothing of the file names one."""
    deployment = settings.deployment
    hosts = (entry.host for entry in deployment.trust)
    named = (arn.split(":")[4] for arn in (*deployment.operators, *filter(None, hosts)))
    return deployment.account or next(named, None)


def _make_longest_role(path: str, settings: StagedLake) -> str:
    region: Any = settings.spec.access.region
    return f"arn:{find_partition(region)}:iam::{'0' * 12}:role{path}{'x' * _LONGEST_NAME}"


def _check_tags(tags: dict[str, str]) -> Iterator[str]:
    if len(tags) > _MOST_TAGS - _OWN_TAGS:
        yield (
            f"deployment.tags: got {len(tags)}; expected at most {_MOST_TAGS - _OWN_TAGS}: a resource has "
            f"{_MOST_TAGS}, and up to {_OWN_TAGS} of them are the stacks' own ({_TAGS})."
        )
    alike = Counter(tag.lower() for tag in tags)
    for tag, count in alike.items():
        if count > 1:
            names = ", ".join(repr(name) for name in tags if name.lower() == tag)
            yield f"deployment.tags: {names} differ in case alone, which IAM refuses; expected other keys ({_TAGS})."
