"""The account that a bucket of artifacts belongs to, and the encryption that it asks for.

Somebody may have made a bucket of that name before. S3 compares the owner that a request expects, and answers 403 for
another one: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-owner-condition.html
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.operate import publishing
from lakewriter.operate.publishing import Asset
from tests.support.call import ACCOUNT, Answer, Call
from tests.support.fixtures import empty_aws
from tests.support.server import StrictAws

BUCKET = "acme-artifacts"
KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
OTHERS = "999999999999"
"""An account that is not ours."""
MANIFEST = {
    "files": {
        "a": {
            "source": {"path": "job.py", "packaging": "file"},
            "destinations": {"b": {"bucketName": BUCKET, "objectKey": "lakewriter-flights-prod/0f.py"}},
        }
    }
}


@pytest.fixture
def artifacts(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictAws]:
    """An AWS with the bucket. Its calls are no load's: they are not recorded with those."""
    with StrictAws() as aws:
        empty_aws(aws, monkeypatch).client("s3").create_bucket(Bucket=BUCKET)
        yield aws


@pytest.mark.parametrize(
    ("owner", "arguments", "expected", "exit_code"),
    [
        (ACCOUNT, [], ACCOUNT, 0),
        (OTHERS, ["--bucket-owner", OTHERS], OTHERS, 0),
        (OTHERS, [], ACCOUNT, 1),
        (ACCOUNT, ["--bucket-owner", OTHERS], OTHERS, 1),
    ],
)
def test_bucket_of_another_account_is_refused(
    tmp_path: Path, artifacts: StrictAws, owner: str, arguments: list[str], expected: str, exit_code: int
) -> None:
    def compare_owner(call: Call, proceed: Callable[[Call], Answer]) -> Answer:
        is_theirs = call.headers.get("x-amz-expected-bucket-owner") == owner
        return proceed(call) if is_theirs or call.service != "s3" else call.denied()

    artifacts.interceptors.append(compare_owner)
    (tmp_path / "job.py").write_text("pass\n", "utf-8")
    (tmp_path / "flights.assets.json").write_text(json.dumps(MANIFEST), "utf-8")
    answer = CliRunner().invoke(main, ["publish", str(tmp_path), "--region", "us-east-1", *arguments])
    assert (answer.exit_code, list(artifacts.objects(BUCKET))) == (
        exit_code,
        [] if exit_code else ["lakewriter-flights-prod/0f.py"],
    )
    assert answer.stderr == (
        "S3_ACCESS_DENIED: s3:PutObject on s3://acme-artifacts/lakewriter-flights-prod/0f.py was denied. Check that "
        f"the policies of these credentials allow it, and that the bucket belongs to account {expected}. Where it is "
        "meant to be another account's, give --bucket-owner. If the bucket's policy demands a header of "
        "encryption, allow s3:GetEncryptionConfiguration too: the header is then sent.\n"
        if exit_code
        else ""
    )


DEFAULTS = [
    ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": KEY}),
    ({"SSEAlgorithm": "AES256"}, {"ServerSideEncryption": "AES256"}),
    (None, None),
]


@pytest.mark.parametrize(("default", "header"), DEFAULTS)
def test_bucket_whose_policy_demands_a_header_of_encryption(
    tmp_path: Path, default: dict[str, str] | None, header: dict[str, str] | None
) -> None:
    """The header is the bucket's default, as the CDK's command line sends it; a default that cannot be read is not."""
    s3 = boto3.client("s3", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
    asset, request = Asset(tmp_path / "a.zip", BUCKET, "a.zip", ACCOUNT), {"Bucket": BUCKET, "Key": "a.zip"}
    owned = {"ExpectedBucketOwner": ACCOUNT}
    with Stubber(s3) as stub:
        stub.add_client_error("put_object", "AccessDenied", http_status_code=403,
                              expected_params=request | owned | {"Body": b"x"})  # fmt: skip
        if default is None:
            stub.add_client_error("get_bucket_encryption", "AccessDenied", http_status_code=403)
        else:
            rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": default}]}
            stub.add_response("get_bucket_encryption", {"ServerSideEncryptionConfiguration": rules},
                              {"Bucket": BUCKET, **owned})  # fmt: skip
            stub.add_response("put_object", {}, request | owned | {"Body": b"x"} | (header or {}))
        if header is None:
            with pytest.raises(ClientError) as caught:
                publishing._put(s3, asset, b"x")
            explained = asset.explain(caught.value, "s3:PutObject", "us-east-1")
            assert "allow s3:GetEncryptionConfiguration too" in explained.remedy
        else:
            publishing._put(s3, asset, b"x")
        stub.assert_no_pending_responses()
