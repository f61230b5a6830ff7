"""What ``cdk import`` is given after a destroy."""

import json

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.review.imports import IDENTIFIERS, write_imports
from tests.infra.destination.lakes import SUPAFLOW
from tests.infra.destination.test_table_bucket import ARN
from tests.infra.destination.test_table_bucket import lake as in_table_bucket
from tests.infra.review.conftest import Synth

pytestmark = pytest.mark.synth


def read_imports(synth: Synth, stage: str) -> dict[str, dict[str, str]]:
    folder, settings = synth.run({"trust": [SUPAFLOW], "encryption": "SSE-KMS"}, stage=stage)
    write_imports(folder, settings)
    path = folder / "import.json"
    return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


def test_what_a_new_stack_could_not_make_again(synth: Synth) -> None:
    assert read_imports(synth, "prod") == {
        "Key": {"KeyId": "FILL IN: its id"},
        "Bucket": {"BucketName": "acme-lake"},
        "BucketPolicy": {"Bucket": "acme-lake"},
        "DatabaseSupaflowNycPublic": {"DatabaseName": "supaflow_nyc_public"},
    }


def test_table_bucket_and_its_namespaces(synth: Synth) -> None:
    folder, settings = synth.run({}, top=in_table_bucket())
    write_imports(folder, settings)
    found = json.loads((folder / "import.json").read_text("utf-8"))
    assert {name: each for name, each in found.items() if "TableBucketARN" in each} == {
        "TableBucket": {"TableBucketARN": ARN},
        "NamespaceShop": {"TableBucketARN": ARN, "Namespace": "shop"},
        "NamespaceShopCrm": {"TableBucketARN": ARN, "Namespace": "shop_crm"},
    }


def test_unprotected_stage_leaves_nothing_to_import(synth: Synth) -> None:
    assert read_imports(synth, "dev") == {}


@pytest.mark.parametrize("kind", IDENTIFIERS)
def test_identifiers(kind: str) -> None:
    # CloudFormation's own schema of the type, as cfn-lint ships it.
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    assert [path.split("/")[2] for path in schema["primaryIdentifier"]] == list(IDENTIFIERS[kind])
