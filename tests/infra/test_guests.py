"""Several pipelines on one bucket: the first file's stack makes it, with a policy about the tables of all."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import yaml
from aws_cdk.assertions import Annotations, Match

from infra.application import add_stacks, synthesise
from infra.checks import check_guests
from infra.destination.stack import DestinationStack
from infra.review.templates import Templates
from infra.settings import Settings, read_defaults
from tests.infra.conftest import SettingsFor
from tests.infra.destination.lakes import SUPAFLOW, lake, of_type, statements
from tests.infra.destination.test_table_bucket import ARN
from tests.infra.destination.test_table_bucket import lake as in_table_bucket
from tests.support.bundles import light_bundle

pytestmark = pytest.mark.synth

DELTA: dict[str, Any] = {"s3_path_prefix": "crm/production", "glue_database_prefix": "crm"}


def guest(pipeline: str = "crm", deployment: dict[str, Any] | None = None, **destination: Any) -> dict[str, Any]:
    """A file of its own prefix and databases."""
    return lake(deployment, **(DELTA | destination)) | {"pipeline": pipeline}


@pytest.fixture
def hosting(settings_for: SettingsFor) -> Any:
    def make(first: dict[str, Any], *others: dict[str, Any], bundle: Path | None = None) -> Settings:
        guests = tuple(settings_for(each, bundle=bundle) for each in others)
        return replace(settings_for(first, bundle=bundle), guests=guests)

    return make


def test_a_guest_has_namespaces_of_its_own_in_the_table_bucket(hosting: Any, tmp_path: Path) -> None:
    further = in_table_bucket() | {"pipeline": "crm"}
    further["destination"] |= {"location": "s3://acme-lake/crm", "database": "crm"}
    settings = hosting(in_table_bucket({"encryption": "SSE-KMS"}), further, bundle=light_bundle(tmp_path / "bundle"))
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path / "cdk.out"))
    add_stacks(app, settings)
    folder = Path(app.synth().directory)
    names = (settings.stack_names[0], settings.guests[0].stack_names[0])
    host, hosted = (dict(template.body) for template in Templates.read(folder, names).stacks)
    assert [list(of_type(each, "S3Tables::TableBucket")) for each in (host, hosted)] == [["TableBucket"], []]
    assert of_type(hosted, "S3Tables::Namespace") == {
        "NamespaceCrm": {"Namespace": "crm", "TableBucketARN": ARN},
        "NamespaceCrmCrm": {"Namespace": "crm_crm", "TableBucketARN": ARN},
    }
    assert list(check_guests(settings)) == []
    shared = hosting(in_table_bucket(), in_table_bucket() | {"pipeline": "crm"})
    assert [line for line in check_guests(shared) if "both write the namespace" in line] == [
        f"lake: pipelines 'shop' and 'crm' both write the namespace {name!r}; expected namespaces of their own. Give "
        "'crm' another database."
        for name in ("shop", "shop_crm")
    ]


KEYED = {"encryption": "SSE-KMS", "account": "123456789012"}


def test_first_owner_takes_further_files(hosting: Any, tmp_path: Path) -> None:
    bundle = light_bundle(tmp_path / "bundle", "x86_64")
    party = {
        "trust": [SUPAFLOW | {"tables": ["crm_own.*"]}],
        "account": "123456789012",
        "alarms": {"email": "a@example.org"},
    }
    settings = hosting(lake(KEYED), guest(deployment=party), bundle=bundle)
    app = cdk.App(context=read_defaults(), analytics_reporting=False, outdir=str(tmp_path / "cdk.out"))
    add_stacks(app, settings)
    folder = Path(app.synth().directory)
    names = (*settings.stack_names, *settings.guests[0].stack_names)
    host, _, hosted, pipeline = (dict(template.body) for template in Templates.read(folder, names).stacks)
    # one bucket, one key, one policy over both, which nobody edits by hand
    assert list(of_type(host, "S3::Bucket")) == ["AccessLogs", "Bucket"]
    assert (of_type(hosted, "S3::Bucket"), of_type(hosted, "KMS::Key"), of_type(hosted, "S3::BucketPolicy")) == (
        {},
        {},
        {},
    )
    kept = statements(host, "BucketPolicy")["KeepObjectsOfTables"]["Resource"]
    assert [each["Fn::Join"][1][1] for each in kept] == [
        "/crm/production/crm_nyc_public/flights/*",
        "/data/production/supaflow_nyc_public/flights/*",
    ]
    # the guest's roles write under the host's key, and its job's artifacts and logs are its own
    kms = [each for each in of_type(hosted, "IAM::ManagedPolicy").values() if "Kms for" in each["Description"]]
    assert len(kms) == 2
    assert len(of_type(pipeline, "EMRServerless::Application")) == 1
    # and its alarms' topic is under that key too
    (mail,) = (
        each
        for each in of_type(host, "KMS::Key")["Key"]["KeyPolicy"]["Statement"]
        if each.get("Sid") == "NotifyOfFailedLoads"
    )
    topics = mail["Condition"]["ArnLike"]["kms:EncryptionContext:aws:sns:topicArn"]
    assert "lakewriter-crm-" in str(topics)
    assert of_type(pipeline, "KMS::Key") == {}
    # and no owner has to be told anything
    stack = app.node.find_child(settings.guests[0].stack_names[0])
    assert isinstance(stack, DestinationStack)
    assert Annotations.from_stack(stack).find_warning("*", Match.any_value()) == []


def test_files_are_given_with_commas_between_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a review of its own."""
    bundle = light_bundle(tmp_path / "bundle", "x86_64")
    stages: dict[str, Any] = {"stages": {"prod": {}}}
    for name, content in (("a.yaml", lake(stages)), ("b.yaml", guest(deployment=stages))):
        (tmp_path / name).write_text(yaml.safe_dump(content), "utf-8")
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "cdk.out"))
    lakes = f"{tmp_path}/a.yaml,{tmp_path}/b.yaml"
    folder, _ = synthesise({"lake": lakes, "stage": "prod", "bundle": str(bundle)})
    assert sorted(path.name for path in folder.glob("review*.md")) == ["review-crm.md", "review.md"]
    assert len(list(folder.glob("*.template.json"))) == 4


BAD = [
    # the further file; what is said of it
    (
        guest(s3_bucket_name="other"),
        "lake: pipeline 'crm' writes to 'other' in 'us-east-1', account any; expected bucket, region and account of "
        "'flights', whose stack makes the bucket for all of these files. Deploy it by itself, or correct its "
        "destination.",
    ),
    (
        guest("flights"),
        "lake: pipelines 'flights' and 'flights' have one name; expected names of their own, by which their records "
        "are kept apart.",
    ),
    (
        guest(s3_path_prefix="data/production/crm"),
        "lake: pipelines 'flights' and 'crm' write under 'data/production/' and 'data/production/crm/'; expected "
        "prefixes of which none holds the other. Give 'crm' another s3_path_prefix.",
    ),
    (
        guest(glue_database_prefix="supaflow"),
        "lake: pipelines 'flights' and 'crm' both write the Glue database 'supaflow_nyc_public'; expected databases of "
        "their own. Give 'crm' another destination_prefix.",
    ),
    (
        guest(glue_database_prefix="supaflow_crm"),
        "lake: 'flights' lets parties from outside write databases named supaflow_*, and 'supaflow_crm_nyc_public' of "
        "'crm' is one. Give its parties 'tables' of their own.",
    ),
    (
        guest(deployment={"spark": {"timeout_minutes": 10080, "attempts": 5}}),
        "deployment.abort_incomplete_uploads_days: 30 of 'flights' is too few for a load of 'crm'; expected 36 or "
        "more, since the bucket has one rule.",
    ),
]


@pytest.mark.parametrize(("further", "said"), BAD)
def test_files_that_are_not_apart(hosting: Any, further: dict[str, Any], said: str) -> None:
    assert list(check_guests(hosting(lake({"trust": [SUPAFLOW]}), further))) == [said]


def test_files_that_are_apart(hosting: Any) -> None:
    assert (
        list(
            check_guests(
                hosting(
                    lake({"trust": [SUPAFLOW]}),
                    guest(),
                    guest("third", s3_path_prefix="third", glue_database_prefix="third"),
                )
            )
        )
        == []
    )
