"""What the stacks' policies are there to prevent, each beside the call that differs in one thing and is allowed."""

from collections.abc import Iterator

import pytest

from lakewriter.policy.statements import Document
from tests.infra.least_privilege.conftest import Stacks
from tests.support.iam import Decision, Policies, Request, simulate

pytestmark = pytest.mark.synth

BUCKET = "arn:aws:s3:::acme-lake"
FILE = f"{BUCKET}/data/production/supaflow_nyc_public/airlines/2027/01/04/06/part-JOB-00001.gzip.parquet"
STATE = f"{BUCKET}/data/production/_lakewriter/flights/tables/supaflow_nyc_public.airlines/state.json"
OUTCOME = f"{BUCKET}/data/production/_lakewriter/flights/runs/NAME.json"
CATALOG = "arn:aws:glue:us-east-1:123456789012"
OURS = "supaflow_nyc_public"
CREATED = {"s3:ObjectCreationOperation": "true"}
NEW = CREATED | {"s3:if-none-match": "*"}
THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
TO_EMR = {"iam:PassedToService": "emr-serverless.amazonaws.com"}

Call = tuple[str, dict[str, str]]
"""Resource and context; ``{key}`` and the like stand for what is known once the stacks are made."""
Attempt = tuple[str, Call | None, Call, str]
"""Action; what is allowed, None for what nobody may do anywhere; what is denied; the statement that denies, if any."""

SSE_HEADER = "s3:x-amz-server-side-encryption"
KEY_HEADER = f"{SSE_HEADER}-aws-kms-key-id"
CALLERS_HEADER = f"{SSE_HEADER}-customer-algorithm"
OTHERS_KEY = "arn:aws:kms:us-east-1:999999999999:key/11111111-2222-3333-4444-555555555555"

OF_LOADERS: list[Attempt] = [
    # other prefixes, one of which merely begins alike
    ("s3:GetObject", (FILE, {}), (f"{BUCKET}/data/production-secret/x", {}), ""),
    ("s3:PutObject", (FILE, NEW), (f"{BUCKET}/data/production-secret/x", NEW), ""),
    ("s3:PutObject", (FILE, NEW), (f"{BUCKET}/data/x", NEW), ""),
    ("s3:DeleteObject", (FILE, {}), (f"{BUCKET}/data/production-secret/x", {}), ""),
    (
        "s3:ListBucket",
        (BUCKET, {"s3:prefix": "data/production/"}),
        (BUCKET, {"s3:prefix": "data/production-secret/"}),
        "",
    ),
    # listing above the prefix
    ("s3:ListBucket", (BUCKET, {"s3:prefix": "data/production"}), (BUCKET, {"s3:prefix": "data/"}), ""),
    ("s3:ListBucket", (BUCKET, {"s3:prefix": "data/production"}), (BUCKET, {"s3:prefix": ""}), ""),
    ("s3:ListBucket", (BUCKET, {"s3:prefix": "data/production"}), (BUCKET, {}), ""),
    # other buckets
    ("s3:GetObject", (FILE, {}), (FILE.replace("acme-lake", "acme-lake-2"), {}), ""),
    (
        "s3:ListBucket",
        (BUCKET, {"s3:prefix": "data/production/"}),
        (f"{BUCKET}-2", {"s3:prefix": "data/production/"}),
        "",
    ),
    # other databases and tables
    ("glue:GetDatabase", (f"{CATALOG}:database/{OURS}", {}), (f"{CATALOG}:database/{OURS}evil", {}), ""),
    ("glue:GetTable", (f"{CATALOG}:table/{OURS}/airlines", {}), (f"{CATALOG}:table/{OURS}evil/airlines", {}), ""),
    ("glue:UpdateTable", (f"{CATALOG}:table/{OURS}/airlines", {}), (f"{CATALOG}:table/{OURS}/airlines2", {}), ""),
    ("glue:DeleteTable", None, (f"{CATALOG}:table/{OURS}/airlines", {}), ""),
    # an object that is there, in the clear
    ("s3:PutObject", (FILE, NEW), (FILE, CREATED), "resource/KeepObjectsOfTables"),
    ("s3:GetObject", (FILE, {}), (FILE, {"aws:SecureTransport": "false"}), "resource/RequireTls"),
    # under another key than the bucket's
    ("s3:PutObject", (FILE, NEW), (FILE, NEW | {KEY_HEADER: OTHERS_KEY}), "resource/EncryptWithTheKey"),
    ("s3:PutObject", (FILE, NEW), (FILE, NEW | {SSE_HEADER: "AES256"}), "resource/NameTheKey"),
    ("s3:PutObject", (FILE, NEW), (FILE, NEW | {CALLERS_HEADER: "AES256"}), "resource/NoKeyOfTheCaller"),
    # what a deletion leaves, and the bucket's own settings
    ("s3:DeleteObjectVersion", None, (FILE, {}), ""),
    ("s3:PutLifecycleConfiguration", None, (BUCKET, {}), ""),
    ("s3:PutBucketPolicy", None, (BUCKET, {}), ""),
    # roles
    ("iam:PassRole", None, ("{JobRole}", TO_EMR), ""),
    ("sts:AssumeRole", None, ("{SupaflowConsumerRole}", {}), ""),
]
OF_LOADS_ELSEWHERE: list[Attempt] = [
    ("kms:Decrypt", ("{key}", THROUGH_S3), ("{key}", {"kms:ViaService": "sqs.us-east-1.amazonaws.com"}), ""),
    ("kms:Decrypt", ("{key}", THROUGH_S3), ("{key}", {}), ""),
    ("kms:Decrypt", ("{key}", THROUGH_S3), ("{key}0", THROUGH_S3), ""),
    ("s3:GetObject", (FILE, {}), ("arn:aws:s3:::acme-landing/flights/flights/part-0.parquet", {}), ""),
]
OF_JOB: list[Attempt] = [
    (
        "s3:GetObject",
        ("arn:aws:s3:::acme-landing/flights/flights/part-0.parquet", {}),
        ("arn:aws:s3:::acme-landing/flights/salaries/part-0.parquet", {}),
        "",
    ),
    (
        "s3:ListBucket",
        ("arn:aws:s3:::acme-landing", {"s3:prefix": "flights/flights/"}),
        ("arn:aws:s3:::acme-landing", {"s3:prefix": "flights/"}),
        "",
    ),
    ("s3:PutObject", None, ("arn:aws:s3:::acme-landing/flights/flights/part-0.parquet", NEW), ""),
    # the key of the logs, and not for what else is kept under it
    *(
        ("kms:Decrypt", ("{key}", {}), ("{key}", {"kms:ViaService": f"{service}.us-east-1.amazonaws.com"}), "")
        for service in ("secretsmanager", "ssm", "sqs", "sns", "logs")
    ),
]
KEPT_OUT = "S3/KeepOutOfControlObjects resource/KeepOutOfControlObjects"
OWN = f"{BUCKET}/data/production/supaflow_crm/contact/2027/01/04/06/part-1.gzip.parquet"
OF_VENDOR: list[Attempt] = [
    # the job's records
    ("s3:PutObject", (OWN, NEW), (STATE, NEW), KEPT_OUT),
    ("s3:GetObject", (OWN, {}), (STATE, {}), KEPT_OUT),
    ("s3:DeleteObject", (OWN, {}), (STATE, {}), KEPT_OUT),
    (
        "s3:ListBucket",
        (BUCKET, {"s3:prefix": "data/production/supaflow_crm/"}),
        (BUCKET, {"s3:prefix": "data/production/_lakewriter/flights/"}),
        "S3/HideControlObjects",
    ),
    # its tables
    ("s3:DeleteObject", (OWN, {}), (FILE, {}), "S3/KeepOutOfTables"),
    ("s3:PutObject", (OWN, CREATED), (FILE, CREATED), "S3/KeepOutOfTables resource/KeepObjectsOfTables"),
    ("s3:GetObject", (OWN, {}), (f"{BUCKET}/data/production-secret/x", {}), ""),
    ("s3:GetObject", (OWN, {}), (OWN.replace("crm", "crm2"), {}), ""),
    ("glue:GetTable", (f"{CATALOG}:table/supaflow_crm/t", {}), (f"{CATALOG}:table/supaflowevil/t", {}), ""),
    (
        "glue:UpdateTable",
        (f"{CATALOG}:table/supaflow_crm/t", {}),
        (f"{CATALOG}:table/{OURS}/airlines", {}),
        "Glue/KeepOutOfJobTables",
    ),
    (
        "glue:UpdateDatabase",
        (f"{CATALOG}:database/supaflow_crm", {}),
        (f"{CATALOG}:database/{OURS}", {}),
        "Glue/KeepOutOfJobDatabases",
    ),
    ("glue:DeleteTable", None, (f"{CATALOG}:table/supaflow_crm/t", {}), ""),
]
OWN_APPLICATION = {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-prod-pipeline"}
OTHER_APPLICATION = {"aws:ResourceTag/LakewriterStack": "lakewriter-flights-prod-2-pipeline"}
JOB_RUN = "{application}/jobruns/00run"
OF_STATE_MACHINE: list[Attempt] = [
    # By its tag: a load goes on with the application of its own release.
    ("emr-serverless:StartJobRun", ("{application}0", OWN_APPLICATION), ("{application}", OTHER_APPLICATION), ""),
    ("emr-serverless:GetJobRun", (JOB_RUN, OWN_APPLICATION), (JOB_RUN, OTHER_APPLICATION), ""),
    ("emr-serverless:CancelJobRun", (JOB_RUN, OWN_APPLICATION), (JOB_RUN, OTHER_APPLICATION), ""),
    ("iam:PassRole", ("{JobRole}", TO_EMR), ("{SupaflowConsumerRole}", TO_EMR), ""),
    ("iam:PassRole", ("{JobRole}", TO_EMR), ("{JobRole}", {"iam:PassedToService": "lambda.amazonaws.com"}), ""),
    ("iam:PassRole", ("{JobRole}", TO_EMR), ("{LoadPermissionsRole}", TO_EMR), ""),
    ("s3:GetObject", (OUTCOME, {}), (STATE, {}), ""),
    ("s3:GetObject", (OUTCOME, {}), (FILE, {}), ""),
    ("s3:PutObject", None, (OUTCOME, NEW), ""),
    ("states:ListExecutions", ("{machine}", {}), ("{machine}0", {}), ""),
]
OF_SCHEDULE: list[Attempt] = [
    ("states:StartExecution", ("{machine}", {}), ("{machine}0", {}), ""),
    ("sqs:SendMessage", ("{dead letters}", {}), ("{dead letters}0", {}), ""),
    ("iam:PassRole", None, ("{JobRole}", TO_EMR), ""),
]
OF_HANDOVER: list[Attempt] = [
    (f"emr-serverless:{verb}Application", ("{application}", OWN_APPLICATION), ("{application}", context), "")
    for verb in ("Get", "Stop", "Delete")
    for context in (OTHER_APPLICATION, {})
] + [
    ("emr-serverless:UpdateApplication", None, ("{application}", OWN_APPLICATION), ""),
    ("emr-serverless:StartJobRun", None, ("{application}", OWN_APPLICATION), ""),
    ("states:DescribeStateMachine", ("{machine}", {}), ("{machine}0", {}), ""),
    ("states:ListExecutions", ("{machine}", {}), ("{machine}0", {}), ""),
    # A load that is not a stream ends in the release that it began with.
    ("states:StartExecution", None, ("{machine}", {}), ""),
    ("states:StopExecution", None, ("{execution}", {}), ""),
    ("states:DescribeStateMachineForExecution", ("{execution}", {}), ("{execution of another}", {}), ""),
]
OF_EVENTS: list[Attempt] = [
    ("states:StartExecution", ("{handover}", {}), ("{machine}", {}), ""),
]
ATTEMPTS = {
    "JobRole": OF_LOADERS + OF_JOB,
    "LaptopConsumerRole": OF_LOADERS + OF_LOADS_ELSEWHERE,
    "SupaflowConsumerRole": OF_VENDOR,
    "LoadPermissionsRole": OF_STATE_MACHINE,
    "StartsRole": OF_SCHEDULE,
    "ReleasesRole": OF_HANDOVER,
    "ReleasesStarts": OF_EVENTS,
}


def decide(stacks: Stacks, role: str, asked: list[tuple[str, Call]]) -> list[Decision]:
    arns = {name: each.arn for name, each in stacks.roles.items()} | dict(stacks.names)
    calls = [(action, resource.format_map(arns), context) for action, (resource, context) in asked]
    requests = [stacks.roles[role].request(*call) for call in calls]
    return simulate(requests, [stacks.policies(role, resource) for _, resource, _ in calls])


@pytest.mark.parametrize("role", ATTEMPTS)
def test_attempts(stacks: Stacks, role: str) -> None:
    rows = ATTEMPTS[role]
    found = decide(stacks, role, [(action, denied) for action, _, denied, _ in rows])
    assert [(not each.allowed, " ".join(each.sids)) for each in found] == [(True, sid) for *_, sid in rows]


@pytest.mark.parametrize("role", ATTEMPTS)
def test_neighbours_of_attempts(stacks: Stacks, role: str) -> None:
    asked = [(action, allowed) for action, allowed, *_ in ATTEMPTS[role] if allowed]
    assert [call for call, found in zip(asked, decide(stacks, role, asked), strict=True) if not found.allowed] == []


def denials(name: str, document: Document) -> Iterator[str]:
    yield from (f"{name}/{each['Sid']}" for each in document["Statement"] if each["Effect"] == "Deny")


def test_every_denial_denies_an_attempt(stacks: Stacks) -> None:
    documents = [item for role in stacks.roles.values() for item in role.documents.items()]
    there = {sid for item in [*documents, ("resource", stacks.bucket_policy)] for sid in denials(*item)}
    assert there == {sid for rows in ATTEMPTS.values() for *_, sids in rows for sid in sids.split()}


SUPAFLOW = "arn:aws:sts::805595753828:assumed-role/Service/session"
LAPTOP = "arn:aws:sts::123456789012:assumed-role/Laptop/session"
STRANGER = "arn:aws:sts::999999999999:assumed-role/Stranger/session"
EMR = "emr-serverless.amazonaws.com"
OF_ACCOUNT = {"aws:SourceAccount": "123456789012"}
APPLICATION = {"aws:SourceArn": "arn:aws:emr-serverless:us-east-1:123456789012:/applications/00abc"}
TRUST: list[tuple[str, str, dict[str, str], bool]] = [
    # role; who asks for it; context; whether it gets it
    ("SupaflowConsumerRole", SUPAFLOW, {"sts:ExternalId": "acme-flights-2f61c7d0"}, True),
    ("SupaflowConsumerRole", SUPAFLOW, {"sts:ExternalId": "ACME-flights-2f61c7d0"}, False),
    ("SupaflowConsumerRole", SUPAFLOW, {"sts:ExternalId": "acme-loads-90b3"}, False),
    ("SupaflowConsumerRole", SUPAFLOW, {}, False),
    ("SupaflowConsumerRole", STRANGER, {"sts:ExternalId": "acme-flights-2f61c7d0"}, False),
    ("SupaflowConsumerRole", LAPTOP, {"sts:ExternalId": "acme-flights-2f61c7d0"}, False),
    ("LaptopConsumerRole", LAPTOP, {"sts:ExternalId": "acme-loads-90b3"}, True),
    ("LaptopConsumerRole", LAPTOP, {}, False),
    ("LaptopConsumerRole", SUPAFLOW, {"sts:ExternalId": "acme-loads-90b3"}, False),
    ("JobRole", EMR, OF_ACCOUNT | APPLICATION, True),
    ("JobRole", EMR, {"aws:SourceAccount": "999999999999"} | APPLICATION, False),
    ("JobRole", "ec2.amazonaws.com", OF_ACCOUNT | APPLICATION, False),
    ("JobRole", SUPAFLOW, {"sts:ExternalId": "acme-flights-2f61c7d0"}, False),
    ("JobRole", LAPTOP, {}, False),
    ("LoadPermissionsRole", EMR, OF_ACCOUNT | APPLICATION, False),
    ("StartsRole", LAPTOP, {}, False),
]
MAY_ASSUME = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}],
}


def test_who_gets_which_role(stacks: Stacks) -> None:
    requests = [Request("sts:AssumeRole", stacks.roles[role].arn, context, who) for role, who, context, _ in TRUST]
    policies = [Policies({"Own": MAY_ASSUME}, stacks.roles[role].trust) for role, *_ in TRUST]
    assert [found.allowed for found in simulate(requests, policies)] == [row[-1] for row in TRUST]
