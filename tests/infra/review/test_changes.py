"""What synth and the review say of a change against the assembly that was deployed last."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.review import list_changes, make_page
from infra.review.changes import REPLACING, compare
from infra.review.harms import Harm, judge_property
from infra.review.page import Code, Table
from infra.review.templates import Templates
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError
from tests.infra.destination.lakes import BOUNDARY, EVERYTHING, SUPAFLOW
from tests.infra.review.conftest import Synth

pytestmark = pytest.mark.synth

BASE: dict[str, Any] = {"trust": [SUPAFLOW], "spark": {"max_executors": 2}}


@pytest.fixture(scope="module")
def deployed(synth: Synth) -> Path:
    return synth.run(BASE)[0]


def find_tables(folder: Path, settings: Settings) -> dict[str, Table]:
    [section] = [each for each in make_page(folder, settings).sections if each.title == "What changes"]
    return {table.caption: table for table in section.tables}


def test_same_assembly_changes_nothing(synth: Synth, deployed: Path) -> None:
    made = synth.run(BASE, deployed)
    assert (find_tables(*made), list_changes(*made)) == ({}, ())


def test_role_path_replaces_roles_and_what_vendors_hold(synth: Synth, deployed: Path) -> None:
    folder, settings = synth.run(BASE | {"role_path": "/lake/"}, deployed)
    rows = find_tables(folder, settings)["Interrupted. Something stops, starts anew, or may do less than before"].rows
    hows = [how for what, how, *_ in rows if isinstance(what, Code) and what.text == "SupaflowConsumerRole (IAM Role)"]
    assert hows == ["replaced; everybody who has its ARN needs the new one: Path"]


def test_prefix_changes_permissions_and_outputs(synth: Synth, deployed: Path) -> None:
    tables = find_tables(*synth.run(BASE, deployed, s3_path_prefix="data/elsewhere"))
    shown = str(tables["Let in. Somebody may do more than before"].rows)
    assert "data/production/*" in shown
    assert "data/elsewhere/*" in shown
    outputs = str(tables["What people outside have by name"].rows)
    assert "('S3 Path Prefix', Code(text='data/production'), Code(text='data/elsewhere'))" in outputs


def test_capacity_makes_another_application(synth: Synth, deployed: Path) -> None:
    folder, settings = synth.run(BASE | {"spark": {"max_executors": 3}}, deployed)
    tables = find_tables(folder, settings)
    assert ("Cpu", "10 vCPU", "14 vCPU") in tables["The most at a time, which bounds the cost"].rows
    rows = tables["Interrupted. Something stops, starts anew, or may do less than before"].rows
    [how] = [how for what, how, *_ in rows if "EMRServerless Application" in str(what)]
    assert how == "removed: kept, and no longer the stack's"
    assert list_changes(folder, settings) == ()


def test_another_stage_is_another_pair_of_stacks(synth: Synth, deployed: Path) -> None:
    stopped = {"stopped_stacks": ["lakewriter-flights-prod-pipeline"]}
    tables = find_tables(*synth.run(BASE | stopped, deployed, stage="live"))
    rows = tables["Interrupted. Something stops, starts anew, or may do less than before"].rows
    hows = [(what.text, how) for what, how, *_ in rows if isinstance(what, Code) and "new stack" in str(how)]
    assert hows == [
        (
            f"lakewriter-flights-live-{stack}",
            f"new stack; lakewriter-flights-prod-{stack} stays as it is, with all it has",
        )
        for stack in ("destination", "pipeline")
    ]


def test_another_stage_is_refused_while_the_old_stack_may_load(synth: Synth, deployed: Path) -> None:
    with pytest.raises(SpecInvalidError) as refused:
        list_changes(*synth.run(BASE, deployed, stage="live"))
    assert refused.value.message == (
        "-c deployed has the stack 'lakewriter-flights-prod-pipeline', and this file makes "
        "'lakewriter-flights-live-pipeline' beside it: the old stack's schedule, stream and running loads would go on."
    )


OTHER = {"vendor": "supaflow", "external_id": "other-2027"}
MOVING = {"vendor": "supaflow", "external_id": "acme-2027", "earlier_external_ids": ["acme-2026"]}
KEYED = {"encryption": "SSE-KMS"}
EARLIER = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
LINES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "external id": (
        {},
        {"trust": [OTHER]},
        "let in: Role SupaflowConsumerRole (changed Allow TrustParty1): arn:aws:iam::805595753828:root sts:AssumeRole "
        "if StringEquals sts:ExternalId acme-2026 -> arn:aws:iam::805595753828:root sts:AssumeRole if StringEquals "
        "sts:ExternalId other-2027",
    ),
    "external id that comes beside the present one": (
        {},
        {"trust": [MOVING]},
        "let in: Role SupaflowConsumerRole (changed Allow TrustParty1): arn:aws:iam::805595753828:root sts:AssumeRole "
        "if StringEquals sts:ExternalId acme-2026 -> arn:aws:iam::805595753828:root sts:AssumeRole if StringEquals "
        "sts:ExternalId acme-2027 or acme-2026",
    ),
    "protection": ({}, {"protect": False}, "deletable: lakewriter-flights-prod-destination (termination protection): "),
    "key that goes": (KEYED, {"earlier_kms_key_arns": [EARLIER]}, "unreadable: Key"),
    "boundary that goes": (
        {"permissions_boundary_arn": BOUNDARY},
        {},
        f"let in: SupaflowConsumerRole (IAM Role) (changed: PermissionsBoundary): PermissionsBoundary: {BOUNDARY} -> ",
    ),
    "versions": (
        {},
        {"versioning": False},
        "deletable: acme-lake (S3 Bucket) (changed: VersioningConfiguration): ",
    ),
    "replica": (
        {},
        {"replication": {"bucket": "acme-lake-west"}},
        "let in: acme-lake (S3 Bucket) (changed: ReplicationConfiguration): ",
    ),
    "tag of the databases": (
        {"lake_formation": {"tags": {"domain": "flights"}}},
        {"lake_formation": {"tags": {"domain": "shop"}}},
        "let in: DatabasesLfTagsSupaflowNycPublicF9D1BFC2 (LakeFormation TagAssociation) (changed: LFTags): ",
    ),
    "grant by tags": (
        {"lake_formation": True},
        {"lake_formation": True, "trust": [SUPAFLOW | {"lf_tags": {"domain": "flights"}}]},
        "let in: arn:aws:iam::<account>:role/<SupaflowConsumerRole> (grant on every database with domain=flights new)",
    ),
    "lake formation": ({}, {"lake_formation": True}, "let in: "),
    "user": ({}, {"iam_user": True}, "let in: User VendorUser (new Allow"),
}
"""Deployments before and after, and the beginning of a line that synth prints."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("before", "after", "line"), LINES.values(), ids=LINES)
def test_what_synth_prints(synth: Synth, before: dict[str, Any], after: dict[str, Any], line: str) -> None:
    old, _ = synth.run(BASE | before)
    lines = list_changes(*synth.run(BASE | after, old))
    assert [each for each in lines if each.startswith(line)] != [], lines


def read(*names: str) -> dict[str, Any]:
    """Tables of sources of their own."""
    return {"tables": [{"table": name, "read": {"format": "parquet", "path": f"s3://raw-{name}/a"}} for name in names]}


CRM = {"principal": "arn:aws:iam::111122223333:role/Crm", "name": "crm", "external_id": "crm-1", "paths": ["crm"]}
LAB = CRM | {"name": "lab", "external_id": "lab-1", "access": "read", "paths": ["lab"]}
HOST = {"name": "host", "identity": {"ec2": "arn:aws:iam::123456789012:role/Host"}, "paths": ["host"]}
LAKE_FORMATION = {"lake_formation": True}
KEPT_OUT = "no longer kept out: "
HARMS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    # before and after, as deployment and tables; the beginning of each line that synth prints
    "a source in another place": ({"top": read("a", "b", "c")}, {"top": read("c", "a", "b")}, []),
    "a source that leaves, and the files of its table stay": (
        {"top": read("a", "b")},
        {"top": read("b")},
        [
            f"{KEPT_OUT}Role SupaflowConsumerRole (changed Deny KeepOutOfTables)",
            f"{KEPT_OUT}Role SupaflowConsumerRole (changed Deny KeepOutOfJobTables)",
            f"{KEPT_OUT}S3 acme-lake (changed Deny KeepObjectsOfTables)",
        ],
    ),
    "the same beside a party that reaches none of them": (
        {"trust": [CRM], "top": read("a", "b")},
        {"trust": [CRM], "top": read("b")},
        [f"{KEPT_OUT}S3 acme-lake (changed Deny KeepObjectsOfTables)"],
    ),
    "a source that comes first": (
        {"top": read("b", "c")},
        {"top": read("a", "b", "c")},
        [
            "let in: Role JobRole (changed Allow WriteObjects)",
            "let in: Role JobRole (changed Allow WriteTables)",
            "let in: Role JobRole (new Allow ListSource1): nothing -> s3:ListBucket on arn:aws:s3:::raw-a",
            "let in: Role JobRole (new Allow ReadSource1): nothing -> s3:GetObject on arn:aws:s3:::raw-a/a",
        ],
    ),
    "a party that leaves": ({"trust": [SUPAFLOW, CRM]}, {}, []),
    "a reader that leaves": ({"trust": [SUPAFLOW, LAB]}, {}, []),
    "a party that leaves a bucket with a key": (KEYED | {"trust": [SUPAFLOW, CRM]}, KEYED, []),
    "a machine that leaves": ({"trust": [SUPAFLOW, HOST]}, {}, []),
    "all that leave": ({"trust": [SUPAFLOW, CRM, LAB]}, {"trust": []}, []),
    "a user that leaves": ({"iam_user": {"paths": ["crm"]}}, {}, []),
    "parties in another order": ({"trust": [SUPAFLOW, CRM]}, {"trust": [CRM, SUPAFLOW]}, []),
    "a contract that is narrower": ({}, {"trust": [SUPAFLOW | {"tables": ["supaflow_crm.*"]}]}, []),
    "a party that only reads from now on, earlier versions too": (
        {"trust": [SUPAFLOW, CRM]},
        {"trust": [SUPAFLOW, CRM | {"access": "read"}]},
        ["let in: Role CrmConsumerRole (new Allow ReadObjects): nothing -> s3:GetObject s3:GetObjectVersion on "],
    ),
    "a key where there was none": ({}, KEYED, []),
    "tags of what is under a key": (KEYED, KEYED | {"tags": {"team": "data"}}, []),
    "a boundary where there was none": ({}, {"permissions_boundary_arn": BOUNDARY}, []),
    "logs that are kept longer": ({}, {"log_retention_days": 90}, []),
    "logs that are kept shorter": (
        {"log_retention_days": 90},
        {},
        ["deletable: AccessLogs (S3 Bucket) (", "deletable: JobLogs (Logs", "deletable: LoadLogs (Logs"],
    ),
    "versions where there were none": ({"versioning": False}, {}, []),
    "uploads that may take longer": ({}, {"abort_incomplete_uploads_days": 40}, []),
    "uploads that may take less long": (
        {},
        {"abort_incomplete_uploads_days": 20},
        ["deletable: acme-lake (S3 Bucket) (changed: LifecycleConfiguration)"],
    ),
    "a schedule": ({}, {"schedule": {"rate": "6 hours"}}, []),
    "mail to somebody new": ({}, {"alarms": {"email": "a@example.org"}}, ["let in: AlarmsEmailTopicaexampleorg"]),
    "mail under the bucket's key": (
        KEYED,
        KEYED | {"alarms": {"email": "a@example.org"}},
        ["let in: AlarmsEmailTopicaexampleorg"],
    ),
    "no mail any more": (KEYED | {"alarms": {"email": "a@example.org"}}, KEYED, []),
    "a schedule under the bucket's key": (KEYED, KEYED | {"schedule": {"rate": "6 hours"}}, []),
    "no schedule any more, and no queue": (
        {"schedule": {"rate": "6 hours"}},
        {},
        ["deletable: DeadLetters (SQS Queue) (removed): nothing -> deleted with the starts in it"],
    ),
    "one operator fewer": (
        {"operators": [f"arn:aws:iam::123456789012:role/{name}" for name in ("A", "B")]},
        {"operators": ["arn:aws:iam::123456789012:role/A"]},
        [],
    ),
    "access logs": ({"access_logs": False}, {}, []),
    "no replica any more": ({"replication": {"bucket": "acme-lake-west"}}, {}, []),
    "no grants any more": (LAKE_FORMATION, {}, []),
    "protection": ({"protect": False}, {"protect": True}, []),
}
"""Of these changes, only those that let somebody in, end a refusal, or make data unreadable or deletable have lines."""


def select_deployment(side: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in side.items() if key != "top"}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("before", "after", "lines"), HARMS.values(), ids=HARMS)
def test_lines_are_of_harms_alone(
    synth: Synth, before: dict[str, Any], after: dict[str, Any], lines: list[str]
) -> None:
    old, _ = synth.run(BASE | select_deployment(before), top=before.get("top"))
    printed = list_changes(*synth.run(BASE | select_deployment(after), old, top=after.get("top")))
    assert len(printed) == len(lines), printed
    assert all(one.startswith(line) for one, line in zip(sorted(printed), sorted(lines), strict=True)), printed


LEAVING = [
    # who leaves; the one line of it on the page
    ({"trust": [SUPAFLOW, CRM]}, "CrmConsumerRole (IAM Role)"),
    (LAKE_FORMATION | {"trust": [SUPAFLOW, LAB | {"paths": [], "tables": ["x.*"]}]}, "LabConsumerRole (IAM Role)"),
    ({"iam_user": {"paths": ["crm"]}}, "VendorUser (IAM User)"),
    ({"trust": [SUPAFLOW, HOST]}, "Role Host"),
]


@pytest.mark.parametrize(("before", "line"), LEAVING, ids=[line for _, line in LEAVING])
def test_a_party_that_leaves_is_one_line(synth: Synth, before: dict[str, Any], line: str) -> None:
    old, _ = synth.run(BASE | before)
    folder, settings = synth.run(BASE | before | {"trust": [SUPAFLOW], "iam_user": False}, old)
    sides = [Templates.read(each, settings.stack_names) for each in (old, folder)]
    assert [(change.harm, change.what) for change in compare(*sides) if "Outputs" not in change.what] == [
        ("Interrupted", line)
    ]


def test_an_earlier_external_id_that_goes_lets_nobody_in(synth: Synth) -> None:
    old, _ = synth.run(BASE | {"trust": [MOVING]})
    assert list_changes(*synth.run(BASE | {"trust": [MOVING | {"earlier_external_ids": []}]}, old)) == ()


def test_new_and_lost_statements_are_of_their_harm(synth: Synth) -> None:
    """A party that may no longer write gets a refusal less, and no permission more."""
    old, _ = synth.run(BASE | {"trust": [SUPAFLOW]})
    lines = list_changes(*synth.run(BASE | {"trust": []}, old))
    assert {line.partition(":")[0] for line in lines} <= {"no longer kept out", "unreadable"}


def test_folder_that_is_no_assembly(synth: Synth, tmp_path: Path) -> None:
    with pytest.raises(SpecInvalidError, match=r"Give a copy of the cdk\.out that was deployed last"):
        list_changes(*synth.run(BASE, tmp_path))


def test_output_folder_is_nothing_to_compare_with() -> None:
    context = {"lake": "examples/demo/lake.yaml", "stage": "dev", "bundle": "build/bundle", "deployed": "cdk.out"}
    with pytest.raises(SpecInvalidError, match="this folder is where synth writes"):
        Settings.read(context.get)


REMOVAL = {"Status": "Enabled", "UnreferencedDays": 31, "NoncurrentDays": 30}
KEYS = [{"SSEAlgorithm": "aws:kms", "KMSKeyArn": {"Fn::GetAtt": [name, "Arn"]}} for name in ("Key", "Other")]
OF_TABLE_BUCKETS: list[tuple[str, Any, Any, Harm]] = [
    # a property before and after: the service takes files sooner, or for good, or not at all any more
    ("UnreferencedFileRemoval", REMOVAL, REMOVAL | {"UnreferencedDays": 30}, Harm.DELETABLE),
    ("UnreferencedFileRemoval", REMOVAL, REMOVAL | {"NoncurrentDays": 10}, Harm.DELETABLE),
    ("UnreferencedFileRemoval", REMOVAL, REMOVAL | {"UnreferencedDays": 32}, Harm.NONE),
    ("UnreferencedFileRemoval", REMOVAL, REMOVAL | {"Status": "Disabled"}, Harm.NONE),
    ("UnreferencedFileRemoval", REMOVAL | {"Status": "Disabled"}, REMOVAL, Harm.DELETABLE),
    # by default after 3 days, and for good after 10
    ("UnreferencedFileRemoval", REMOVAL, None, Harm.DELETABLE),
    ("UnreferencedFileRemoval", None, REMOVAL, Harm.NONE),
    ("EncryptionConfiguration", {"SSEAlgorithm": "AES256"}, KEYS[0], Harm.NONE),
    ("EncryptionConfiguration", KEYS[0], KEYS[1], Harm.UNREADABLE),
    ("TableBucketName", "acme-tables", "acme-other", Harm.UNREADABLE),
]


@pytest.mark.parametrize(("key", "before", "after", "harm"), OF_TABLE_BUCKETS)
def test_changes_of_a_table_bucket(key: str, before: Any, after: Any, harm: Harm) -> None:
    sides = ({key: value} if value is not None else {} for value in (before, after))
    assert judge_property("AWS::S3Tables::TableBucket", key, *sides) is harm


@pytest.mark.parametrize("kind", REPLACING)
def test_properties_that_replace_a_resource(kind: str) -> None:
    # CloudFormation's own schema of the type, as cfn-lint ships it.
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    only = {path.split("/")[2] for path in schema.get("createOnlyProperties", [])}
    assert set(REPLACING[kind]) <= only


def list_mutants(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """List one change of each value in a template, and the removal of each key and item."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key), REMOVED
            yield from list_mutants(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield (*path, index), REMOVED
            yield from list_mutants(inner, (*path, index))
    elif isinstance(value, bool):
        yield path, not value
    else:
        yield path, f"{value}x"


REMOVED = object()


def mutate(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Copy a template with one value changed, as little of it as that takes."""
    if not path:
        return value
    first, *rest = path
    copy = body.copy()
    if not rest and value is REMOVED:
        del copy[first]
    else:
        copy[first] = mutate(body[first], tuple(rest), value)
    return copy


# A template without these cannot be read at all: CDK writes them always.
NEEDED = ("Type", "Action", "Effect", "Statement", "DatabaseInput", "PolicyDocument", "KeyPolicy")


@pytest.mark.exhaustive
def test_each_single_change_of_a_template_is_seen(synth: Synth) -> None:
    folder, settings = synth.run(EVERYTHING)
    templates = Templates.read(folder, settings.stack_names)
    unseen, count = [], 0
    for number, stack in enumerate(templates.stacks):
        for path, value in list_mutants(stack.body):
            if value is REMOVED and (len(path) == 1 or path[-1] in NEEDED):
                continue
            changed = replace(stack, body=mutate(stack.body, path, value))
            stacks = tuple(changed if index == number else each for index, each in enumerate(templates.stacks))
            try:
                changes = compare(templates, replace(templates, stacks=stacks))
            except (LookupError, AttributeError, TypeError, ValueError):
                # No template: a reference to nothing, or a value of another kind. CloudFormation refuses it as well.
                continue
            count += 1
            if not changes:
                unseen.append(path)
    assert unseen == []
    assert count > 3500
