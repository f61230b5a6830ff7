"""What HEAD says of an object's content, against a receipt's parts, where etags say something and where not."""

from datetime import timedelta
from typing import cast

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.store import Store, StoredObject
from lakewriter.operate.load_objects import compare_objects
from lakewriter.receipt import Part, Receipt
from lakewriter.spec.access import Access
from tests.commit import intents
from tests.commit.memory import World

EMPTY = "d41d8cd98f00b204e9800998ecf8427e"
"""The MD5 of nothing."""
# md5(2 * bytes.fromhex(EMPTY)), and the CRC32 of eight bytes of zero, which two parts of checksum 0 give.
ETAG, CHECKSUM = "5873dd45edd01f09c1ef2e7819369e8e-2", "ZSLfaQ=="
PARTS = (Part(1, EMPTY, "AAAAAA=="), Part(2, EMPTY, "AAAAAA=="))
ENDPOINT = "https://minio.example.com"
LOAD = "p/a/1"

CASES = [
    (StoredObject(7, LOAD, f'"{ETAG}"', checksum=CHECKSUM), None, []),
    (StoredObject(7, LOAD, f'"{ETAG}"'), None, []),
    (StoredObject(7, LOAD, f'"{ETAG}"', checksum="AAAAAA=="), None, ["object_changed"]),
    (StoredObject(7, LOAD, f'"{EMPTY}"', checksum=CHECKSUM), None, ["object_changed"]),
    # A key of KMS makes etags that say nothing; the checksum does.
    (StoredObject(7, LOAD, '"x-2"', checksum=CHECKSUM, is_kms=True), None, []),
    (StoredObject(7, LOAD, '"x-2"', checksum="AAAAAA==", is_kms=True), None, ["object_changed"]),
    # rclone's server has the MD5 of the whole content, MinIO what S3 has.
    (StoredObject(7, LOAD, f'"{EMPTY}"'), ENDPOINT, []),
    (StoredObject(7, LOAD, f'"{EMPTY}-2"'), ENDPOINT, ["object_changed"]),
    (StoredObject(7, LOAD, f'"{ETAG}"'), ENDPOINT, []),
    (StoredObject(8, LOAD, f'"{ETAG}"'), None, ["object_changed"]),
    (StoredObject(7, "", f'"{ETAG}"'), None, ["object_replaced"]),
    (None, None, ["object_gone"]),
]


class One:
    """A store with one object or none."""

    def __init__(self, found):
        self._found = found

    def find(self, key, *, checksum):
        assert (key, checksum) == ("t/1.csv", True)
        return self._found


@pytest.mark.parametrize(("found", "endpoint", "expected"), CASES)
def test_content(found, endpoint, expected):
    receipt = Receipt(
        bucket="b", key="t/1.csv", upload_id="u", parts=PARTS, checksum_algorithm="CRC32", size=7, rows=1, partition=0,
        seq=0, first_index=1, engine="csv", row_groups=1, requests={},
    )  # fmt: skip
    access = Access(bucket="b", region="us-east-1", endpoint=endpoint)
    own = Attempt("p", "a", "1", World().tick(), timedelta(days=30))
    intent = intents.intent(own, (receipt,), access=access)
    told = compare_objects(intent, cast(Store, One(found)), Clients(access), lambda _: True)
    assert [each.kind for each in told] == expected
