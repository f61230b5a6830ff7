"""Loads that go on from a replica: S3 copies objects in any order, so that one may be there without another."""

import duckdb
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.loads import Loads
from lakewriter.operate.rebuild import InCatalog, rebuild
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify_all
from tests.load.lakes import BUCKET
from tests.operate.shop import FILES
from tests.support.product_calls import REPLICA


class Replica:
    """What S3 had copied of the shop's bucket when its region was lost, in a bucket with another name."""

    def __init__(self, shop):
        self.shop, self.s3 = shop, shop.aws.client("s3")
        self.s3.create_bucket(Bucket=REPLICA)
        access = shop.lake.spec.access.model_copy(update={"bucket": REPLICA})
        self.spec = shop.lake.spec.model_copy(update={"access": access})

    def copy(self, is_copied=lambda _: True):
        """As S3 does it: metadata and parts are those of the object."""
        for key in filter(is_copied, self.shop.aws.objects(BUCKET)):
            found = self.s3.get_object(Bucket=BUCKET, Key=key)
            where = {"Bucket": REPLICA, "Key": key}
            if "-" not in found["ETag"]:
                self.s3.put_object(**where, Metadata=found["Metadata"], Body=found["Body"].read())
                continue
            begun = where | {
                "UploadId": self.s3.create_multipart_upload(**where, Metadata=found["Metadata"])["UploadId"]
            }
            etag = self.s3.upload_part(**begun, PartNumber=1, Body=found["Body"].read())["ETag"]
            self.s3.complete_multipart_upload(**begun, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]})

    def lose_the_bucket(self):
        for key in self.shop.aws.objects(BUCKET):
            self.s3.delete_object(Bucket=BUCKET, Key=key)

    @property
    def pipeline(self):
        return Pipeline.open(self.spec, Clients(self.spec.access))

    def load(self, job):
        assert self.shop.try_load(job, spec=self.spec).status == "done"

    def list_differences(self):
        loads = verify_all(self.pipeline.controls, self.pipeline.clients, Counting("_supa_id"))
        return [(load.job_id, str(each.kind)) for load in loads for each in load.differences]

    def read_ids(self):
        copy = self.shop.folder / "copy.parquet"
        found = []
        for key, body in self.shop.aws.objects(REPLICA).items():
            if key.endswith(".parquet"):
                copy.write_bytes(body)
                found += [row[0] for row in duckdb.sql(f"SELECT id FROM read_parquet('{copy}')").fetchall()]
        return sorted(found)


@pytest.fixture
def replica(shop):
    made = shop(FILES, cursor="id")
    made.load("a")
    return Replica(made)


def is_state(key):
    return key.endswith("state.json")


def test_a_whole_replica_is_loaded_on(replica):
    replica.shop.load("b")
    replica.copy()
    replica.lose_the_bucket()
    assert replica.list_differences() == []
    replica.load("c")
    assert replica.read_ids() == [0, 1, 2, 3, 4, 5]


def test_records_that_came_before_their_file(replica):
    """The load is undone, and the next one reads its rows again."""
    before = {*replica.shop.aws.objects(BUCKET)}
    replica.shop.load("b")
    replica.copy(lambda key: key in before or not key.endswith(".parquet"))
    assert replica.list_differences() == [("b", "object_gone")]
    replica.lose_the_bucket()
    Undo(replica.pipeline, "b", Choices("its file is not in the replica")).run()
    replica.load("c")
    assert replica.read_ids() == [0, 1, 2, 3, 4, 5]


def test_a_file_and_its_records_that_came_before_the_state(replica):
    """The state is concluded anew from the records: by the old one, the next load would read the rows twice."""
    replica.copy(is_state)
    replica.shop.load("b")
    replica.copy(lambda key: not is_state(key))
    replica.lose_the_bucket()
    # What two loads show is told once, with the first of them.
    assert replica.list_differences() == [("a", "records_disagree")]
    control = replica.pipeline.first_control
    replica.s3.delete_object(Bucket=REPLICA, Key=control.keys.state(control.table_id))
    rebuild(control, replica.spec.tables[0], InCatalog(), "the state is older than its loads", None, from_start=False)
    assert replica.list_differences() == []
    replica.load("c")
    assert replica.read_ids() == [0, 1, 2, 3, 4, 5]


def test_a_file_that_came_before_its_records(replica):
    """For ``verify`` it may be of a load that is about to be committed; the list of loads tells that there is none."""
    before = {*replica.shop.aws.objects(BUCKET)}
    replica.copy()
    replica.shop.load("b")
    replica.copy(lambda key: key not in before and key.endswith(".parquet"))
    replica.lose_the_bucket()
    assert replica.list_differences() == []
    assert [load.job_id for load in Loads(replica.pipeline.controls).read_last(9)] == ["a"]
    [foreign] = [key for key in replica.shop.aws.objects(REPLICA) if key.endswith(".parquet") and key not in before]
    replica.s3.delete_object(Bucket=REPLICA, Key=foreign)
    replica.load("c")
    assert replica.read_ids() == [0, 1, 2, 3, 4, 5]


def test_a_load_that_was_pending_is_withdrawn(replica):
    """S3 copies no upload that is not completed. The next load finds that the files can never be there."""

    def refuse(call, proceed):
        return call.denied() if call.method == "POST" and "uploadId" in call.query else proceed(call)

    replica.shop.aws.interceptors.append(refuse)
    assert replica.shop.try_load("b").status == "failed"
    replica.shop.aws.interceptors.remove(refuse)
    pending = replica.shop.control.state.read().pending
    assert (pending.job_id, pending.phase) == ("b", "intended")
    replica.copy()
    replica.lose_the_bucket()
    replica.load("c")
    assert replica.read_ids() == [0, 1, 2, 3, 4, 5]
