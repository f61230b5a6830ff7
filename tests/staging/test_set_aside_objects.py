"""The call that creates an object of bad rows, by what S3 answers to each try of it."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakewriter.errors import LakeError
from lakewriter.staging import set_aside
from lakewriter.staging.set_aside import make_object_writer

ANSWERS = [
    # what S3 answers, one try after the other, whether the object is there:
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html, 409 ConditionalRequestConflict
    ([200], True),
    ([412], True),
    ([409, 200], True),
    ([409, 409, 409, 412], True),
    ([409] * 5, False),
    ([403], False),
]


@pytest.mark.parametrize(("answers", "is_there"), ANSWERS)
def test_object_of_bad_rows_by_answers(monkeypatch, answers, is_there):
    monkeypatch.setattr(set_aside, "_PAUSE", 0)
    tries: list[dict[str, Any]] = []

    def put_object(**given):
        tries.append(given)
        status = answers[len(tries) - 1]
        if status != 200:
            answer: Any = {"Error": {"Code": str(status)}, "ResponseMetadata": {"HTTPStatusCode": status}}
            raise ClientError(answer, "PutObject")

    access = SimpleNamespace(single_writer=False, checksum_algorithm=None, bucket="lake", role=None)
    clients: Any = SimpleNamespace(access=access, s3=SimpleNamespace(put_object=put_object))
    write = make_object_writer(clients)
    if is_there:
        write("k", b"x")
    else:
        with pytest.raises(LakeError):
            write("k", b"x")
    assert tries == [{"Bucket": "lake", "Key": "k", "Body": b"x", "IfNoneMatch": "*"}] * len(answers)
