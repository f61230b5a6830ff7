"""What an attempt clears up, on an S3 server."""

from datetime import UTC, datetime, timedelta

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import reach_from
from lakewriter.commit.s3_store import S3Store
from lakewriter.naming import ControlKeys
from lakewriter.spec.access import Access
from lakewriter.spec.layout import Layout, Template
from tests.support.sdk import sdk

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_an_earlier_attempts_uploads_go_whatever_the_clocks_say(aws, bucket):
    """versitygw gives uploads the time, and keeps its Date header for a second: they seem to begin after they did."""
    clients = Clients(Access(bucket=bucket, region="us-east-1"))
    control = Control(S3Store(clients), ControlKeys("", "p"), "s.t")
    layout = Layout("s/t", Template(()), Template.parse("part-{job_id}-{seq}"), ".parquet")
    for number in (1, 2):
        own = Attempt("p", "a", f"A{number}", NOON, timedelta(days=30))
        names = layout.bind(job_id=own.job_id, attempt=own.id, start=own.started)
        control.write_once(control.keys.begin(own.job_id, own.id), attempts.begin_record(own, {"s.t": names}))
        aws.clock = lambda: NOON
        assert attempts.register(control, own, reach_from(clients)) is not None
        if number == 1:
            aws.clock = lambda: NOON + SECOND
            staged = sdk("s3").create_multipart_upload(Bucket=bucket, Key="s/t/part-a-00000.parquet")
            assert aws.uploads(bucket) == [("s/t/part-a-00000.parquet", staged["UploadId"])]
    assert aws.uploads(bucket) == []
