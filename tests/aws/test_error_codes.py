"""What each error code means, held against the models and the retry rules that the SDK comes with."""

from collections.abc import Iterator

import botocore.session
import pytest
from botocore.loaders import Loader
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker

from lakewriter.aws.error_codes import MEANINGS, Meaning, classify
from lakewriter.aws.required_fields import REQUIRED

SERVICES = {"secrets-manager": "secretsmanager"}
RETRIED = (Meaning.PASSING, Meaning.EXPIRED, Meaning.CLOCK)


def modelled_codes() -> Iterator[str]:
    """The error codes that the SDK's models give the operations which are called."""
    session = botocore.session.Session()
    for operation in REQUIRED:
        service, name = operation.split(".")
        model = session.get_service_model(SERVICES.get(service, service)).operation_model(name)
        for shape in model.error_shapes:
            yield shape.metadata.get("error", {}).get("code") or shape.name


def retried_codes() -> Iterator[str]:
    """The error codes that the SDK's retry modes try again, for all services or for one that is called."""
    yield from vars(ThrottledRetryableChecker)["_THROTTLED_ERROR_CODES"]
    yield from vars(TransientRetryableChecker)["_TRANSIENT_ERROR_CODES"]
    rules = Loader().load_data("_retry")
    conditions = [rules["definitions"][name]["applies_when"] for name in rules["definitions"]]
    for service in ("s3", "glue", "sts", "iam", "secretsmanager", "ssm"):
        own = rules["retry"].get(service, {}).get("__default__", {}).get("policies", {})
        conditions += [policy["applies_when"] for policy in own.values() if "applies_when" in policy]
    for condition in conditions:
        if code := condition.get("response", {}).get("service_error_code"):
            yield code


def test_every_modelled_code_has_a_meaning():
    assert sorted(set(modelled_codes()) - set(MEANINGS)) == []


def test_what_the_sdk_tries_again_is_transient():
    wrong = {code for code in retried_codes() if classify(code, 400) not in RETRIED}
    assert wrong == set()
    assert {status for status in (429, 500, 502, 503, 504, 509) if classify("?", status) not in RETRIED} == set()


MEANT = [
    # code, status, message, meaning; messages as AWS words them
    ("TooManyRequests", 429, "", Meaning.PASSING),
    ("TooManyRequestsException", 429, "", Meaning.PASSING),
    ("XMinioSomething", 503, "", Meaning.PASSING),
    ("NotImplemented", 501, "A header you provided implies functionality that is not implemented.", Meaning.FINAL),
    ("SomethingElse", 501, "", Meaning.FINAL),
    ("SomethingElse", 400, "", Meaning.FINAL),
    ("SomethingElse", 403, "", Meaning.DENIED),
    ("ExpiredToken", 400, "The provided token has expired.", Meaning.EXPIRED),
    ("ExpiredTokenException", 400, "The security token included in the request is expired", Meaning.EXPIRED),
    ("RequestTimeTooSkewed", 403, "The difference between the request time and ...", Meaning.CLOCK),
    ("SignatureDoesNotMatch", 403, "Signature expired: 2026 is now earlier than 2026", Meaning.CLOCK),
    ("InvalidSignatureException", 400, "Signature not yet current: 2026 is still later than", Meaning.CLOCK),
    ("SignatureDoesNotMatch", 403, "The request signature we calculated does not match", Meaning.WRONG_KEYS),
    ("AuthorizationHeaderMalformed", 400, "the region 'us-east-1' is wrong; expecting 'eu-west-1'", Meaning.ELSEWHERE),
    (
        "AuthorizationHeaderMalformed",
        400,
        'the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".',
        Meaning.WRONG_KEYS,
    ),
    (
        "AuthorizationHeaderMalformed",
        400,
        "a non-empty Access Key (AKID) must be provided in the credential.",
        Meaning.WRONG_KEYS,
    ),
    ("EntityNotFoundException", 400, "Catalog 123456789012:sales not found.", Meaning.NO_CATALOG),
    ("EntityNotFoundException", 400, "Database nyc not found.", Meaning.FINAL),
]


@pytest.mark.parametrize(("code", "status", "message", "meaning"), MEANT)
def test_meaning(code, status, message, meaning):
    assert classify(code, status, message) is meaning
