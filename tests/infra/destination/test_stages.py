"""Two stages of one file, side by side."""

from typing import Any

import aws_cdk as cdk
import pytest

from infra.destination.stack import DestinationStack
from infra.settings import read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.lakes import SUPAFLOW, lake

pytestmark = pytest.mark.synth

STAGES = {
    "dev": {"destination": {"s3_bucket_name": "acme-lake-dev", "destination_prefix": "nyc_dev"}},
    "prod": {},
}


@pytest.fixture(scope="module")
def templates(settings_for: SettingsFor, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path_factory.mktemp("cdk.out")))
    for stage in STAGES:
        settings = settings_for(lake({"trust": [SUPAFLOW], "stages": STAGES}), stage=stage)
        DestinationStack(app, settings.stack_names[0], settings=settings)
    return {stack.stack_name: stack.template for stack in app.synth().stacks}


def test_stages_have_stacks_of_their_own(templates: dict[str, Any]) -> None:
    assert list(templates) == ["lakewriter-flights-dev-destination", "lakewriter-flights-prod-destination"]


def test_no_physical_name_is_in_both_stages(templates: dict[str, Any]) -> None:
    names = [_physical_names(template) for template in templates.values()]
    assert names == [
        {"acme-lake-dev", "supaflow_nyc_dev_public"},
        {"acme-lake", "supaflow_nyc_public"},
    ]


def _physical_names(template: dict[str, Any]) -> set[str]:
    named = ("BucketName", "RoleName", "UserName", "ManagedPolicyName", "Name")
    found = set()
    for resource in template["Resources"].values():
        given = resource.get("Properties", {})
        given = {**given, **given.get("DatabaseInput", {})}
        found |= {given[key] for key in named if isinstance(given.get(key), str)}
    return found
