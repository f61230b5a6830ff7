"""The user for a vendor that takes keys only."""

import json
from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import lake, of_type

pytestmark = pytest.mark.synth


def test_key_goes_into_a_secret_and_nowhere_else(synthesise: Synthesise) -> None:
    template = synthesise(lake({"iam_user": True, "iam_user_key_serial": 2})).template
    key = "VendorUserAccessKey"
    assert of_type(template, "IAM::AccessKey")[key] == {"UserName": {"Ref": "VendorUser"}, "Serial": 2}
    secret_access_key = {"Fn::GetAtt": [key, "SecretAccessKey"]}
    assert of_type(template, "SecretsManager::Secret")["VendorUserKey"]["SecretString"] == {
        "Fn::Join": [
            "",
            ['{"access_key_id":"', {"Ref": key}, '","secret_access_key":"', secret_access_key, '"}'],
        ]
    }
    assert json.dumps(template).count('"SecretAccessKey"') == 1
    assert json.dumps(template).count(f'{{"Ref": "{key}"}}') == 1


def test_outputs_say_where_the_key_is(synthesise: Synthesise) -> None:
    outputs = synthesise(lake({"iam_user": True})).template["Outputs"]
    assert outputs["AccessKeySecretARN"]["Value"] == {"Ref": "VendorUserKey"}


def test_no_user_by_default(plain: dict[str, Any]) -> None:
    assert of_type(plain, "IAM::User") == {}


def test_secret_is_under_the_lakes_key(full: dict[str, Any]) -> None:
    secret = of_type(full, "SecretsManager::Secret")["VendorUserKey"]
    assert secret["KmsKeyId"] == {"Fn::GetAtt": ["Key", "Arn"]}
