"""A wrong bucket, endpoint, region or key: what a load and ``check`` say has the keys of the user's own dialect."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.doctor import run_checks
from lakewriter.errors import LakeError
from lakewriter.run.loader import load
from lakewriter.spec.specification import Spec
from tests.load.lakes import BUCKET
from tests.support.server import StrictAws

READ = {"format": "csv", "path": "a.csv"}
SUPAFLOW = {
    "type": "supaflow-s3", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1", "access_key_id": "AKIA0",
    "secret_access_key": "${env:SECRET}", "custom_s3_endpoint": None,
}  # fmt: skip
AIRBYTE = {
    "type": "airbyte-s3", "s3_bucket_name": BUCKET, "s3_bucket_path": "sync", "s3_bucket_region": "us-east-1",
    "access_key_id": "AKIA0", "secret_access_key": "${env:SECRET}", "s3_endpoint": None,
    "format": {"format_type": "CSV"},
}  # fmt: skip
ESTUARY = {
    "type": "estuary-s3-parquet", "bucket": BUCKET, "region": "us-east-1", "uploadIntervalInSeconds": 5,
    "awsAccessKeyId": "AKIA0", "awsSecretAccessKey": "${env:SECRET}", "advanced": {"endpoint": None},
}  # fmt: skip
DIALECTS: list[tuple[dict[str, Any], dict[str, str]]] = [
    # the destination, and what its own document calls bucket, region, endpoint, key id and secret key
    (SUPAFLOW, {"bucket": "s3_bucket_name", "region": "bucket_region", "endpoint": "custom_s3_endpoint",
                "id": "access_key_id", "secret": "secret_access_key"}),
    (AIRBYTE, {"bucket": "s3_bucket_name", "region": "s3_bucket_region", "endpoint": "s3_endpoint",
               "id": "access_key_id", "secret": "secret_access_key"}),
    (AIRBYTE | {"type": "heropixel-s3"}, {"bucket": "s3_bucket_name", "region": "s3_bucket_region",
                "endpoint": "s3_endpoint", "id": "access_key_id", "secret": "secret_access_key"}),
    (ESTUARY, {"bucket": "bucket", "region": "region", "endpoint": "advanced.endpoint", "id": "awsAccessKeyId",
               "secret": "awsSecretAccessKey"}),
]  # fmt: skip
EVERY_KEY = {
    *("s3_bucket_name", "bucket_region", "s3_bucket_region", "custom_s3_endpoint", "s3_endpoint", "advanced.endpoint"),
    *("access_key_id", "secret_access_key", "awsAccessKeyId", "awsSecretAccessKey", "s3_path_prefix", "s3_bucket_path"),
}


def refuse(code: str, status: int = 403) -> Callable[[StrictAws], None]:
    return lambda aws: aws.fail(lambda call: call.service == "s3", status=status, code=code, message="no", times=999)


WRONG: list[tuple[str, dict[str, Any], str, Callable[[StrictAws], None], str, str]] = [
    # what is wrong, its settings, the secret, what S3 does; the code, what the remedy says in the dialect's keys
    ("bucket", {"bucket": "acme-lakes"}, "s", lambda _: None, "BUCKET_NOT_FOUND",
     "Check {bucket} for typing errors, and {endpoint} if there is one; or create the bucket: the stacks do, "
     "and no load."),
    ("endpoint", {"endpoint": "http://127.0.0.1:1"}, "s", lambda _: None, "ENDPOINT_UNREACHABLE",
     "Check {endpoint}, and the network path from here"),
    ("region", {"region": "eu-west-1"}, "s", lambda _: None, "BUCKET_REGION_MISMATCH", "Set {region} to "),
    ("keys", {}, "s", refuse("SignatureDoesNotMatch"), "CREDENTIALS_INVALID", "Check {id} and {secret}: that they "),
    ("key id", {}, "s", refuse("InvalidAccessKeyId"), "CREDENTIALS_INVALID", "Check {id} and {secret}: that they "),
    ("masked", {}, "****", lambda _: None, "CREDENTIALS_INVALID", "the value of {secret} is masked"),
    ("no answer", {}, "s", refuse("SlowDown", 503), "TIMEOUT", "Check {region} and the network path"),
]  # fmt: skip


def written(tmp_path, destination: dict[str, Any], keys: dict[str, str], over: dict[str, Any]) -> Spec:
    """The file with other settings, under the dialect's own keys."""
    own = {key: dict(value) if isinstance(value, dict) else value for key, value in destination.items()}
    for what, value in over.items():
        *path, last = keys[what].split(".")
        (own[path[0]] if path else own)[last] = value
    table: dict[str, Any] = {"table": "t", "schema": "s", "read": READ}
    if own["type"] == "estuary-s3-parquet":
        table = {"source": "a/t", "primary_key": ["id"], "read": READ, "resource": {"pathPrefix": "/t"}}
        own["advanced"] = {key: value for key, value in own["advanced"].items() if value}
    content = {key: value for key, value in own.items() if value is not None}
    lake = {"pipeline": "p", "destination": content, "tables": [table]}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(lake), "utf-8")
    return load_spec(tmp_path / "lake.yaml")


def of_others(text: str, keys: dict[str, str]) -> list[str]:
    """Keys in a message that another dialect has."""
    others = EVERY_KEY - set(keys.values()) - {"s3_path_prefix" if keys["region"] == "bucket_region" else ""}
    others -= {"s3_bucket_path"} if keys["region"] == "s3_bucket_region" else set()
    return [key for key in sorted(others) if re.search(rf"(?<![\w.]){re.escape(key)}(?!\w)", text)]


def checked(spec: Spec) -> str:
    """All that ``check`` finds wrong; keys that cannot be keys leave it nothing to ask with."""
    try:
        findings = run_checks(spec, Clients(spec.access))
    except LakeError as error:
        return str(error)
    return " ".join(f"{each.code}: {each.message} {each.remedy}" for each in findings if each.status == "failed")


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("what", "over", "secret", "trouble", "code", "remedy"), WRONG, ids=[row[0] for row in WRONG])
@pytest.mark.parametrize(("destination", "keys"), DIALECTS, ids=[own["type"] for own, _ in DIALECTS])
def test_messages_have_the_dialects_keys(
    tmp_path, aws, bucket, monkeypatch, destination, keys, what, over, secret, trouble, code, remedy
):
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setenv("SECRET", secret)
    spec = written(tmp_path, destination, keys, over)
    trouble(aws)

    def spark() -> Any:
        raise AssertionError("nothing is read before the destination answers")

    with pytest.raises(LakeError) as caught:
        load(spec, job_id="j", clients=Clients(spec.access), spark=spark)
    assert caught.value.code == code
    assert remedy.format(**keys) in str(caught.value)
    assert of_others(str(caught.value), keys) == []
    told = checked(spec)
    assert f"{code}: " in told
    assert remedy.format(**keys) in told
    assert of_others(told, keys) == []
