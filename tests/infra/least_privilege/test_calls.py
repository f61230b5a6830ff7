"""What the product asks of AWS in tests, under the policies of the stacks: all is allowed, and all is used."""

from collections.abc import Iterator, Mapping

import pytest

from lakewriter.policy.statements import Document
from tests.infra.least_privilege.conftest import Stacks
from tests.support.iam import Decision, simulate
from tests.support.product_calls import DEMO_BUCKET, Pattern
from tests.support.recording import known_calls

pytestmark = pytest.mark.synth

LOADERS = ("JobRole", "LaptopConsumerRole")
"""Roles that write to the destination by themselves."""
TAKEN = "arn:aws:iam::123456789012:role/LakeWriter"
"""The role that a job takes elsewhere; it is no stack's."""

# Calls that no role of the stacks may make, each with the reason why none has to.
OTHERWISE = {
    "iam:GetPolicy": "`lakewriter check` reads policies with the keys of whoever runs it, and can do without.",
    "iam:GetPolicyVersion": "The same.",
    "iam:GetRole": "The same.",
    "iam:GetRolePolicy": "The same.",
    "iam:ListAttachedRolePolicies": "The same.",
    "iam:ListRolePolicies": "The same.",
    "glue:GetDataCatalogEncryptionSettings": "The same, of the catalog that the job writes.",
    "s3:GetEncryptionConfiguration": "The same, of the buckets that the job reads.",
    "sts:GetCallerIdentity": "Everybody may, whatever policies say.",
    **dict.fromkeys(
        sorted({pattern.action for pattern in known_calls() if pattern.action.startswith("s3tables:")}),
        "Tables of S3 Tables alone are asked for by it: tests/policy/test_table_bucket.py.",
    ),
}
REFUSED = {
    Pattern("s3:ListBucket", f"arn:aws:s3:::{DEMO_BUCKET}"): (
        "HeadBucket of `lakewriter check`: a refusal tells the region as well, and is what a role with a prefix gets."
    ),
    Pattern(
        "s3:PutObject",
        f"arn:aws:s3:::{DEMO_BUCKET}/data/production/supaflow_nyc_public/airlines/_latest/files.json",
        (("s3:ObjectCreationOperation", "true"), ("s3:if-match", "ETAG")),
    ): (
        "Full refreshes alone replace such an object, and the bucket's policy leaves out their tables'; this table's "
        "loads append."
    ),
    Pattern(
        "s3:PutObject",
        f"arn:aws:s3:::{DEMO_BUCKET}/data/production/supaflow_nyc_public/airlines/_lakewriter/owners/DIRECTORY.json",
        (("s3:ObjectCreationOperation", "true"), ("s3:if-match", "ETAG")),
    ): (
        "The record of a folder that a second pipeline comes to: the bucket's policy leaves out those that several of "
        "its pipelines write, and one pipeline alone writes this table."
    ),
    Pattern("glue:GetCatalog", "arn:aws:glue:us-east-1:123456789012:catalog"): (
        "Iceberg tables alone are asked for by it; the policies of their pipelines allow it."
    ),
    **{
        Pattern(f"glue:{verb}TableOptimizer", f"arn:aws:glue:us-east-1:123456789012:{path}"): (
            "Iceberg tables alone have optimizers; the policies of pipelines with maintenance.optimizer_role allow it."
        )
        for verb in ("Create", "Delete", "Get", "Update")
        for path in ("catalog", "database/supaflow_nyc_public", "table/supaflow_nyc_public/airlines")
    },
    **{
        Pattern("glue:GetTables", f"arn:aws:glue:us-east-1:123456789012:{path}"): (
            "Iceberg tables alone have orphan files; the policies of pipelines with maintenance.delete_orphans_days "
            "allow it."
        )
        for path in ("catalog", "database/supaflow_nyc_public", "table/supaflow_nyc_public/EVERY")
    },
}


IN_DOCUMENTS = "The vendors' documents have it, and it shows no more than a listing does."
BY_EMR = "EMR Serverless does this with the job's role, before the job runs or beside it."
UNUSED = {
    "JobRole": {
        "JobPolicy/ReadArtifacts": (["s3:GetObject"], BY_EMR),
        "JobPolicy/WriteLogs": (["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"], BY_EMR),
        "JobPolicy/FindLogGroup": (["logs:DescribeLogGroups"], BY_EMR),
        "JobPolicy/MakeLogGroup": (["logs:CreateLogGroup"], f"{BY_EMR} No recorded call has it: its page lists it."),
        "JobPolicy/EncryptEventLog": (["kms:Decrypt", "kms:GenerateDataKey"], BY_EMR),
        "S3/InspectBucket": (["s3:GetBucketLocation"], IN_DOCUMENTS),
        "S3/WriteObjects": (["s3:ListMultipartUploadParts"], IN_DOCUMENTS),
    },
    "LaptopConsumerRole": {
        "S3/InspectBucket": (["s3:GetBucketLocation"], IN_DOCUMENTS),
        "S3/WriteObjects": (["s3:ListMultipartUploadParts"], IN_DOCUMENTS),
    },
}
"""Actions that no recorded call needs, by statement."""
BY_OTHERS = {
    "LoadPermissionsRole": {
        "LoadPermissionsJobRuns/StartJobRuns": "Step Functions starts the job: its definition runs in other tests.",
        "LoadPermissionsJobRuns/TagJobRuns": "StartJobRun is given tags.",
        "LoadPermissionsJobRuns/TagJobRunsOfApplications": "The same.",
        "LoadPermissionsJobRuns/FollowAndCancelJobRuns": "Step Functions waits for the job, and cancels it.",
        "LoadPermissionsJobRuns/StartEncryptedRuns": "EMR Serverless refuses runs of who may not use its keys.",
        "LoadPermissionsJobRuns/RunJobsAsTheJobRole": "StartJobRun is given the job's role.",
        "LoadPermissionsJobRuns/HearOfJobRuns": "Step Functions hears of the job's end by a rule of its own.",
        "LoadPermissionsOutcomes/ReadOutcomes": "The definition reads what the job left.",
        "LoadPermissionsOutcomes/DecryptOutcomes": "The same, from an encrypted bucket.",
        "LoadPermissionsTelling/TellOfLoads": "The definition counts loads.",
        "LoadPermissionsTelling/DeliverLoadLogs": "Step Functions writes the machine's log.",
        "LoadPermissionsTelling/TraceLoads": "Step Functions writes the machine's traces.",
        "LoadsOverlapGuard/StartWatch": "The definition has the hours since the last success counted anew.",
        "LoadsOverlapGuard/FindRunningLoads": "The definition looks for a load that runs.",
    },
    "StartsRole": {
        "StartsRolePermissions/StartLoads": "EventBridge Scheduler starts the state machine.",
        "StartsRolePermissions/KeepUndelivered": "EventBridge Scheduler keeps what it could not deliver.",
        "StartsRolePermissions/EncryptUndelivered": "The same, in an encrypted queue.",
    },
    "ReleasesRole": {
        "ReleasesOfLoads/ReadPresentRelease": "The handover compares the loads that run with the present release.",
        "ReleasesOfLoads/ReadReleaseOfLoads": "The same.",
        "ReleasesOfApplications/FindEarlierApplications": "The handover looks for applications of earlier releases.",
        "ReleasesOfApplications/DeleteEarlierApplications": "It deletes them when no load uses them.",
        "ReleasesTelling/DeliverLoadLogs": "Step Functions writes the machine's log.",
        "ReleasesTelling/TraceLoads": "Step Functions writes the machine's traces.",
    },
    "ReleasesStarts": {"ReleasesStartsPermissions/StartHandovers": "EventBridge starts the handover."},
    "SilenceRole": {
        "SilenceTelling/TellOfSilence": "The definition publishes the hours since the last success.",
        "SilenceTelling/DeliverLoadLogs": "Step Functions writes the machine's log.",
        "SilenceTelling/TraceLoads": "Step Functions writes the machine's traces.",
        "SilenceAgain/WatchOn": "The definition looks for a newer execution, and hands over to one.",
    },
    "SilenceStarts": {"SilenceStartsPermissions/StartWatch": "EventBridge starts the watch after a deployment."},
    "SupaflowConsumerRole": {
        "S3/ListUnderPrefix": "Supaflow writes to the same lake; its document asks for this.",
        "S3/InspectBucket": "The same.",
        "S3/WriteObjects": "The same.",
        "Glue/ReadCatalog": "The same.",
        "Glue/WriteTables": "The same.",
        "Kms/UseKeyThroughS3": "The same, in an encrypted bucket.",
    },
}
"""Statements of roles that the product's own calls are never made with: who makes use of them."""


def at_destination(pattern: Pattern) -> bool:
    return pattern.resource.startswith((f"arn:aws:s3:::{DEMO_BUCKET}", "arn:aws:glue:"))


def with_key(patterns: list[Pattern], key: str) -> Iterator[Pattern]:
    """What S3 asks of the key of a bucket for each call; a multipart upload reads its parts.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html#mpuAndPermissions
    """
    yield from patterns
    through_s3 = (("kms:ViaService", "s3.us-east-1.amazonaws.com"),)
    if any(pattern.action == "s3:PutObject" for pattern in patterns):
        yield Pattern("kms:GenerateDataKey", key, through_s3)
        yield Pattern("kms:Decrypt", key, through_s3)


def decide(stacks: Stacks, role: str, patterns: list[Pattern]) -> list[Decision]:
    requests = [stacks.roles[role].request(*pattern[:2], dict(pattern.context)) for pattern in patterns]
    return simulate(requests, [stacks.policies(role, pattern.resource) for pattern in patterns])


def destination_calls(stacks: Stacks) -> list[Pattern]:
    found = [pattern for pattern in known_calls() if at_destination(pattern) and pattern not in REFUSED]
    found = [pattern for pattern in found if pattern.action not in OTHERWISE]
    return list(with_key(found, stacks.names["key"]))


def other_calls() -> list[Pattern]:
    """Of the sources, of secrets and of the role to take: the job's role makes them wherever it writes."""
    return [pattern for pattern in known_calls() if not at_destination(pattern) and pattern.action not in OTHERWISE]


@pytest.mark.parametrize("role", LOADERS)
def test_loads_may_do_all_they_do(stacks: Stacks, role: str) -> None:
    calls = destination_calls(stacks)
    decisions = decide(stacks, role, calls)
    assert [call for call, found in zip(calls, decisions, strict=True) if not found.allowed] == []


def test_job_may_do_all_it_does_elsewhere(taking: Stacks) -> None:
    calls = other_calls()
    decisions = decide(taking, "JobRole", calls)
    assert [call for call, found in zip(calls, decisions, strict=True) if not found.allowed] == []


def test_what_is_refused_is_still_asked(stacks: Stacks) -> None:
    assert [pattern for pattern in REFUSED if pattern not in known_calls()] == []
    assert [found.allowed for found in decide(stacks, "JobRole", list(REFUSED))] == [False] * len(REFUSED)
    assert sorted(OTHERWISE) == sorted({call.action for call in known_calls() if call.action in OTHERWISE})


def allowed(documents: Mapping[str, Document]) -> set[tuple[str, str]]:
    """Each action of each statement that allows: ``policy/Sid`` and action."""
    return {
        (f"{name}/{statement['Sid']}", action)
        for name, document in documents.items()
        for statement in document["Statement"]
        if statement["Effect"] == "Allow"
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }


def used(stacks: Stacks, role: str, calls: list[Pattern]) -> set[tuple[str, str]]:
    """What of them allows a call; the key of the event log, which is EMR Serverless's, is the bucket's by chance."""
    decisions = decide(stacks, role, calls)
    found = {(sid, call.action) for call, found in zip(calls, decisions, strict=True) for sid in found.sids}
    return {(sid, action) for sid, action in found if not sid.startswith("JobPolicy/")}


def unused(stacks: Stacks, role: str, calls: list[Pattern]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for sid, action in sorted(allowed(stacks.roles[role].documents) - used(stacks, role, calls)):
        found.setdefault(sid, []).append(action)
    return found


@pytest.mark.parametrize("role", LOADERS)
def test_nothing_is_allowed_that_is_not_used(stacks: Stacks, role: str) -> None:
    found = unused(stacks, role, [*destination_calls(stacks), *other_calls()])
    assert found == {sid: actions for sid, (actions, _) in UNUSED[role].items()}


def test_nothing_is_allowed_elsewhere_that_is_not_used(taking: Stacks) -> None:
    found = unused(taking, "JobRole", other_calls())
    # It has neither the destination's statements nor a key.
    assert sorted(found) == [
        "JobPolicy/FindLogGroup",
        "JobPolicy/MakeLogGroup",
        "JobPolicy/ReadArtifacts",
        "JobPolicy/WriteLogs",
    ]


@pytest.mark.parametrize("role", BY_OTHERS)
def test_statements_of_others_have_their_reasons(stacks: Stacks, role: str) -> None:
    assert {sid for sid, _ in allowed(stacks.roles[role].documents)} == set(BY_OTHERS[role])


def test_every_role_is_looked_at(stacks: Stacks) -> None:
    assert set(stacks.roles) == {*LOADERS, *BY_OTHERS}


def test_vendor_that_ran_our_load_would_be_refused_every_object(stacks: Stacks) -> None:
    calls = [call for call in destination_calls(stacks) if call.resource.startswith(f"arn:aws:s3:::{DEMO_BUCKET}/")]
    got = {
        call for call, found in zip(calls, decide(stacks, "SupaflowConsumerRole", calls), strict=True) if found.allowed
    }
    assert got == set()
