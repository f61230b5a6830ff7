"""Secrets, roles and errors, against the embedded AWS."""

import os
import pickle
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import (
    ConfigParseError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ResponseStreamingError,
)
from botocore.loaders import JSONFileLoader
from urllib3.exceptions import ProtocolError

from lakewriter.aws import (
    ClientError,
    Clients,
    explain,
    fill_region,
    get_shared_clients,
    read_object,
    resolve,
    resolve_all,
)
from lakewriter.aws.credentials import make_default_client, make_session
from lakewriter.aws.vended import Vended
from lakewriter.errors import CredentialsInvalidError, RoleNotAssumableError, SecretUnresolvedError
from lakewriter.spec.access import Access, SecretText

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


def access(**fields):
    return Access(**({"bucket": "acme-lake", "region": "us-east-1", "role_wait_seconds": 0} | fields))


@pytest.fixture
def secrets(aws, monkeypatch):
    monkeypatch.setenv("LAKE_TOKEN", "from env")
    arn = aws.client("secretsmanager").create_secret(Name="lake", SecretString='{"password": "from secret"}')["ARN"]
    aws.client("ssm").put_parameter(Name="/lake/token", Value="from ssm", Type="SecureString")
    return arn


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${env:LAKE_TOKEN}", "from env"),
        ("${ssm:/lake/token}", "from ssm"),
        ("${secret:ARN}", '{"password": "from secret"}'),
        ("${secret:ARN:password}", "from secret"),
        ("literal", "literal"),
    ],
)
def test_resolve(secrets, reference, expected):
    assert resolve(SecretText(reference.replace("ARN", secrets)), region="us-east-1") == expected


NO_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:no-AbCdEf"
UNRESOLVED = [
    # reference, the reason's beginning
    ("${env:NOT_THERE}", "the environment has no such variable)."),
    ("${ssm:/not/there}", "ParameterNotFound: "),
    ("${secret:ARN:other}", "KeyError: 'other')."),
    (f"${{secret:{NO_SECRET}}}", "ResourceNotFoundException: "),
    ("${secret:arn:lake}", "IndexError: "),
    ("${secret:plain:password}", "JSONDecodeError: Expecting value: line 1 column 1 (char 0))."),
    ("${secret:list:password}", "TypeError: "),
    ("${secret:binary}", "KeyError: 'SecretString')."),
]


@pytest.mark.parametrize(("reference", "reason"), UNRESOLVED)
def test_unresolved(aws, secrets, reference, reason):
    manager = aws.client("secretsmanager")
    manager.create_secret(Name="plain", SecretString="from secret")
    manager.create_secret(Name="list", SecretString='["from secret"]')
    manager.create_secret(Name="binary", SecretBinary=b"from secret")
    text = reference.replace("ARN", secrets)
    with pytest.raises(SecretUnresolvedError) as caught:
        resolve(SecretText(text), region="us-east-1")
    assert caught.value.message.startswith(f"{text} cannot be resolved ({reason}")
    assert "from secret" not in str(caught.value)


def test_every_secret_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("THERE", "value")
    with pytest.raises(SecretUnresolvedError) as caught:
        resolve_all([SecretText(f"${{env:{name}}}") for name in ("DB_USER", "THERE", "DB_PASSWORD")])
    assert str(caught.value) == (
        "SECRET_UNRESOLVED: ${env:DB_USER} cannot be resolved (the environment has no such variable). "
        "${env:DB_PASSWORD} cannot be resolved (the environment has no such variable). Export the variable, "
        "or name another one."
    )


@pytest.mark.parametrize("external_id", ["right", None])
def test_role(aws, bucket, external_id):
    aws.role(ROLE, external_id)
    given = {"external_id": external_id} if external_id else {}
    assert Clients(access(role_arn=ROLE, **given)).s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize(("role", "external_id"), [(ROLE, "wrong"), (ROLE, None), (ROLE + "Other", "right")])
def test_role_that_is_refused(aws, bucket, role, external_id):
    aws.role(ROLE, "right")
    given = {"external_id": external_id} if external_id else {}
    with pytest.raises(RoleNotAssumableError) as caught:
        Clients(access(role_arn=role, **given)).s3.list_objects_v2(Bucket=bucket)
    assert role in caught.value.message
    assert "external" in caught.value.remedy


def vend():
    return Vended("ASIAVENDED", "s", "t")


KEYS = {"access_key_id": "AKIAGIVEN", "secret_access_key": "s"}
SIGNERS = [
    # access, vendor, who signs for the role, who signs for S3 ("role": what STS has handed out)
    ({}, None, None, "testing"),
    (KEYS, None, None, "AKIAGIVEN"),
    ({"role_arn": ROLE}, None, "testing", "role"),
    (KEYS | {"role_arn": ROLE, "external_id": "right"}, None, "AKIAGIVEN", "role"),
    ({}, vend, None, "ASIAVENDED"),
    (KEYS, vend, None, "AKIAGIVEN"),
    ({"role_arn": ROLE}, vend, "testing", "role"),
    (KEYS | {"role_arn": ROLE}, vend, "AKIAGIVEN", "role"),
]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("fields", "vendor", "assumes", "signs"), SIGNERS)
def test_who_signs(aws, bucket, fields, vendor, assumes, signs, shared):
    """``shared`` is how tasks come by their clients, whose access and vendor were pickled."""
    aws.role(ROLE, fields.get("external_id"))
    own = access(**fields)
    clients = get_shared_clients(*pickle.loads(pickle.dumps((own, vendor)))) if shared else Clients(own, vendor)
    clients.s3.list_objects_v2(Bucket=bucket)
    keys = {call.action: call.access_key for call, _ in aws.history}
    assert keys.get("sts:AssumeRole") == assumes
    assert (signs if keys["s3:ListBucket"] in aws.sessions else keys["s3:ListBucket"]) == signs
    assert (keys["s3:ListBucket"] in aws.sessions) == (signs == "role")


def test_role_beside_keys_is_renewed(aws, bucket):
    aws.role(ROLE)
    aws.session_seconds(1)
    clients = Clients(access(role_arn=ROLE, **KEYS))
    for _ in range(2):
        clients.s3.list_objects_v2(Bucket=bucket)
        time.sleep(1.1)
    signed = [(call.action, call.access_key) for call, _ in aws.history]
    assert signed.count(("sts:AssumeRole", "AKIAGIVEN")) == 2
    assert len({key for action, key in signed if action == "s3:ListBucket"}) == 2


def test_blank_external_id_is_refused_at_once(aws, bucket, monkeypatch):
    """No request is sent, so waiting for a new role to be known would not help."""
    aws.role(ROLE, "right")
    monkeypatch.setenv("BLANK", "")
    fields = {"role_arn": ROLE, "external_id": SecretText("${env:BLANK}"), "role_wait_seconds": 3600}
    with pytest.raises(RoleNotAssumableError, match="Invalid length for parameter ExternalId"):
        Clients(access(**fields)).s3.list_objects_v2(Bucket=bucket)


def test_keys_given(aws, bucket, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("STORE_SECRET", "from env")
    keys = {"access_key_id": "AKIA0", "secret_access_key": SecretText("${env:STORE_SECRET}")}
    clients = Clients(access(**keys))
    assert clients.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    assert clients.requests == {"GET": 1}


def test_keys_that_lead_nowhere(aws):
    with pytest.raises(SecretUnresolvedError):
        Clients(access(access_key_id="AKIA0", secret_access_key="${env:NOT_THERE}"))


EXPLAINED = [
    # what was called, the answer's code and status, the code it ends in, whether a retry can help
    ("s3:ListBucket", "NoSuchBucket", 404, "BUCKET_NOT_FOUND", False),
    ("s3:ListBucket", "PermanentRedirect", 301, "BUCKET_REGION_MISMATCH", False),
    ("s3:PutObject", "AccessDenied", 403, "S3_ACCESS_DENIED", False),
    ("s3:PutObject", "SlowDown", 503, "TIMEOUT", True),
    ("s3:PutObject", "InternalError", 500, "TIMEOUT", True),
    ("sts:AssumeRole", "AccessDenied", 403, "ROLE_NOT_ASSUMABLE", False),
    ("sts:AssumeRole", "InvalidClientTokenId", 403, "CREDENTIALS_INVALID", False),
    ("s3:PutObject", "RequestTimeout", 400, "TIMEOUT", True),
    ("s3:PutObject", "ConditionalRequestConflict", 409, "TIMEOUT", True),
    ("s3:PutObject", "OperationAborted", 409, "TIMEOUT", True),
    ("s3:PutObject", "InvalidAccessKeyId", 403, "CREDENTIALS_INVALID", False),
    ("s3:PutObject", "SignatureDoesNotMatch", 403, "CREDENTIALS_INVALID", False),
    ("s3:PutObject", "ExpiredToken", 400, "TIMEOUT", True),
    ("s3:PutObject", "RequestTimeTooSkewed", 403, "TIMEOUT", True),
    ("s3:PutObject", "TooManyRequests", 429, "TIMEOUT", True),
    ("s3:PutObject", "NotImplemented", 501, "S3_ACCESS_DENIED", False),
    ("s3:PutObject", "EntityTooLarge", 400, "S3_ACCESS_DENIED", False),
    ("s3:HeadBucket", "301", 301, "BUCKET_REGION_MISMATCH", False),
    ("s3:ListBucket", "AuthorizationHeaderMalformed", 400, "BUCKET_REGION_MISMATCH", False),
    ("sts:AssumeRole", "InternalFailure", 500, "TIMEOUT", True),
    ("sts:AssumeRole", "Throttling", 400, "TIMEOUT", True),
    ("sts:AssumeRole", "ExpiredToken", 400, "TIMEOUT", True),
    ("glue:GetTable", "TooManyRequestsException", 400, "TIMEOUT", True),
    ("glue:GetTable", "UnrecognizedClientException", 400, "CREDENTIALS_INVALID", False),
    ("glue:CreateTable", "AccessDeniedException", 400, "GLUE_ACCESS_DENIED", False),
    ("glue:CreateTable", "ThrottlingException", 400, "TIMEOUT", True),
    ("glue:CreateTable", "OperationTimeoutException", 400, "TIMEOUT", True),
    ("glue:CreateTable", "ConcurrentModificationException", 400, "TIMEOUT", True),
    ("glue:GetTable", "ResourceNotReadyException", 400, "TIMEOUT", True),
    ("glue:CreateTable", "InternalServiceException", 500, "TIMEOUT", True),
    ("glue:CreateTable", "InvalidInputException", 400, "GLUE_ACCESS_DENIED", False),
]


@pytest.mark.parametrize(("doing", "code", "status", "expected", "transient"), EXPLAINED)
def test_explain(doing, code, status, expected, transient):
    answer: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = explain(ClientError(answer, "Call"), doing=doing, access=access(role_arn=ROLE))
    assert (error.code, error.transient) == (expected, transient)
    assert str(error).startswith(f"{expected}: ")


UNSENT = [
    # what was called, what the SDK raised without an answer, the message's beginning
    ("s3:ListBucket", NoCredentialsError(), "S3_ACCESS_DENIED: no AWS credentials for s3:ListBucket."),
    (
        "s3:GetObject on s3://b/p/x.json",
        NoCredentialsError(),
        "S3_ACCESS_DENIED: no AWS credentials for s3:GetObject on s3://b. C",
    ),
    ("s3:PutObject", ConfigParseError(path="c", error="e"), "CREDENTIALS_INVALID: s3:PutObject: ConfigParseError: "),
    ("s3:ListBucket", EndpointConnectionError(endpoint_url="https://s3"), "TIMEOUT: s3:ListBucket: no answer ("),
    ("glue:GetTable", ConnectTimeoutError(endpoint_url="https://glue"), "TIMEOUT: glue:GetTable: no answer ("),
    ("sts:AssumeRole", ParamValidationError(report="x"), f"ROLE_NOT_ASSUMABLE: sts:AssumeRole on {ROLE}: Param"),
    ("s3:PutObject", ParamValidationError(report="x"), "S3_ACCESS_DENIED: s3:PutObject: ParamValidationError: "),
]


@pytest.mark.parametrize(("doing", "raised", "expected"), UNSENT)
def test_explain_what_got_no_answer(doing, raised, expected):
    assert str(explain(raised, doing=doing, access=access(role_arn=ROLE))).startswith(expected)


SETTINGS = [
    # AWS_PROFILE, the file of AWS_CONFIG_FILE, the end of the message
    ("nosuch", "", "ProfileNotFound: The config profile (nosuch) could not be found."),
    ("x", "[profile x\n", "ConfigParseError: Unable to parse config file: {path}."),
    (
        "x",
        "[profile x]\ndefaults_mode = best\n",
        "InvalidDefaultsMode: Client configured with invalid defaults mode: best",
    ),
]
USES = {
    "the destination": lambda: Clients(Access(bucket="b", region="us-east-1")).s3,
    "a source": lambda: make_default_client("s3", "us-east-1"),
    "a region that the file does not give": lambda: fill_region(Access(bucket="b", region="")),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("profile", "config", "expected"), SETTINGS)
def test_settings_of_the_machine_that_the_sdk_cannot_use(use, profile, config, expected, tmp_path, monkeypatch):
    path = tmp_path / "config"
    path.write_text(config)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    monkeypatch.setenv("AWS_PROFILE", profile)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(path))
    with pytest.raises(CredentialsInvalidError) as raised:
        use()
    begin = "the AWS settings of this machine cannot be used: "
    assert raised.value.message.startswith(begin + expected.format(path=path))
    assert raised.value.remedy.startswith("Check AWS_PROFILE, AWS_CONFIG_FILE")


class BreakingClient:
    """An S3 client whose first answers break off: before the object's content begins, or within it."""

    def __init__(self, *errors):
        self.errors = list(errors)

    def get_object(self, **_):
        error = self.errors.pop(0) if self.errors else None
        if isinstance(error, ProtocolError):
            raise error
        return {"Body": self if error is None else Cut(error), "ETag": '"e"'}

    def read(self):
        return b"content"


class Cut:
    def __init__(self, error):
        self.error = error

    def read(self):
        raise self.error


# What botocore lets out while it reads a 404's text, and what its streaming body raises.
RESET = ProtocolError("Connection broken: ConnectionResetError(104, 'Connection reset by peer')")
CUT = ResponseStreamingError(error="IncompleteRead(3 bytes read, 4 more expected)")


@pytest.mark.parametrize("errors", [(), (RESET,), (CUT,), (RESET, CUT, RESET, CUT)])
def test_read_object_asks_again(errors):
    assert read_object(BreakingClient(*errors), Bucket="b", Key="k") == (b"content", '"e"')


@pytest.mark.parametrize("error", [RESET, CUT])
def test_read_object_gives_up(error):
    with pytest.raises(ResponseStreamingError, match="An error occurred while reading from response stream") as raised:
        read_object(BreakingClient(*[error] * 5), Bucket="b", Key="k")
    explained = explain(raised.value, doing="s3:GetObject on s3://b/k", access=access())
    assert (explained.code, explained.transient) == ("TIMEOUT", True)


def test_models_of_services_are_parsed_once(monkeypatch):
    """Every load has a session of its own, and S3's model is a megabyte of JSON."""
    parsed, load_file = [], JSONFileLoader.load_file

    def count(self, path):
        content = load_file(self, path)
        parsed.extend([path] if content is not None else [])
        return content

    assert Clients(access()).s3 is not None
    monkeypatch.setattr(JSONFileLoader, "load_file", count)
    assert Clients(access()).s3 is not None
    assert parsed == []


def test_models_of_the_user_are_found(tmp_path, monkeypatch):
    """As botocore's own loader: folders of AWS_DATA_PATH, with variables and the home folder resolved."""
    monkeypatch.setenv("MODELS", str(tmp_path))
    monkeypatch.setenv("AWS_DATA_PATH", os.pathsep.join(["$MODELS", "~/models"]))
    loader = make_session(access()).get_component("data_loader")
    assert loader.search_paths[:2] == [str(tmp_path), str(Path.home() / "models")]
