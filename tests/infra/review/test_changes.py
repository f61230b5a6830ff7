"""What synth and the review say of a change against the assembly that was deployed last."""

from pathlib import Path
from typing import Any

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.review import list_changes, make_page
from infra.review.changes import REPLACING
from infra.review.page import Table
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError
from tests.infra.destination.lakes import SUPAFLOW
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
    lines = list_changes(*synth.run(BASE | {"role_path": "/lake/"}, deployed))
    roles = [line for line in lines if "IAM Role" in line]
    assert "replaced: SupaflowConsumerRole (IAM Role) Path; whoever has its ARN has to get the new one" in roles
    assert all(line.startswith("replaced: ") for line in roles)


def test_prefix_changes_permissions_and_outputs(synth: Synth, deployed: Path) -> None:
    tables = find_tables(*synth.run(BASE, deployed, s3_path_prefix="data/elsewhere"))
    shown = str(tables["Permissions"].rows)
    assert "data/production/*" in shown
    assert "data/elsewhere/*" in shown
    outputs = str(tables["What people outside have by name"].rows)
    assert "('S3 Path Prefix', Code(text='data/production'), Code(text='data/elsewhere'))" in outputs


def test_capacity_makes_another_application(synth: Synth, deployed: Path) -> None:
    folder, settings = synth.run(BASE | {"spark": {"max_executors": 3}}, deployed)
    rows = find_tables(folder, settings)["The most at a time, which bounds the cost"].rows
    assert ("Cpu", "10 vCPU", "14 vCPU") in rows
    [line] = list_changes(folder, settings)
    assert (line[:20], line.endswith("kept, and no longer the stack's")) == ("removed: Application", True)


def test_another_stage_is_another_pair_of_stacks(synth: Synth, deployed: Path) -> None:
    stopped = {"stopped_stacks": ["lakewriter-flights-prod-pipeline"]}
    lines = list_changes(*synth.run(BASE | stopped, deployed, stage="live"))
    assert [line.partition(" (")[0] for line in lines] == [
        "new stack: lakewriter-flights-live-destination",
        "new stack: lakewriter-flights-live-pipeline",
    ]
    assert "lakewriter-flights-prod-destination stays as it is" in lines[0]


def test_another_stage_is_refused_while_the_old_stack_may_load(synth: Synth, deployed: Path) -> None:
    with pytest.raises(SpecInvalidError) as refused:
        list_changes(*synth.run(BASE, deployed, stage="live"))
    assert refused.value.message == (
        "-c deployed has the stack 'lakewriter-flights-prod-pipeline', and this file makes "
        "'lakewriter-flights-live-pipeline' beside it: the old stack's schedule, stream and running loads would go on."
    )


def test_folder_that_is_no_assembly(synth: Synth, tmp_path: Path) -> None:
    with pytest.raises(SpecInvalidError, match=r"Give a copy of the cdk\.out that was deployed last"):
        list_changes(*synth.run(BASE, tmp_path))


def test_output_folder_is_nothing_to_compare_with() -> None:
    context = {"lake": "examples/demo/lake.yaml", "stage": "dev", "bundle": "build/bundle", "deployed": "cdk.out"}
    with pytest.raises(SpecInvalidError, match="this folder is where synth writes"):
        Settings.read(context.get)


@pytest.mark.parametrize("kind", REPLACING)
def test_properties_that_replace_a_resource(kind: str) -> None:
    # CloudFormation's own schema of the type, as cfn-lint ships it.
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    only = {path.split("/")[2] for path in schema.get("createOnlyProperties", [])}
    assert set(REPLACING[kind]) <= only
