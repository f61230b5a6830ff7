"""The gate itself, and what the commit's store makes of an answer that goes wrong on its way."""

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.spec.access import Access
from tests.faults.gate import Fault, Gate, once
from tests.load.lakes import calls
from tests.support.sdk import sdk

KEY = "data/production/_lakewriter/flights/tables/nyc.flights/state.json"
MEETINGS = [
    # what the caller meets, and whether the call was applied
    (Fault.ERROR, ClientError, False),
    (Fault.SLOW_DOWN, ClientError, False),
    (Fault.RESET, BotoCoreError, False),
    (Fault.STALL, BotoCoreError, False),
    (Fault.CUT, BotoCoreError, True),
    (Fault.DROP, BotoCoreError, True),
]


@pytest.mark.parametrize(("fault", "error", "applied"), MEETINGS)
def test_fault(aws, bucket, monkeypatch, fault, error, applied):
    with Gate(aws.url, once(calls("s3:PutObject"), fault), stall_seconds=0.1) as gate:
        monkeypatch.setenv("AWS_ENDPOINT_URL", gate.url)
        client = sdk("s3")
        with pytest.raises(error):
            client.put_object(Bucket=bucket, Key=KEY, Body=b"{}")
    assert (gate.met, KEY in aws.objects(bucket)) == ([fault], applied)


def test_point_before_and_after_a_call(aws, bucket, monkeypatch):
    seen = []
    with Gate(aws.url) as gate:
        for applied in (False, True):
            gate.at(calls("s3:PutObject"), lambda: seen.append(list(aws.objects(bucket))), after=1, applied=applied)
        monkeypatch.setenv("AWS_ENDPOINT_URL", gate.url)
        client = sdk("s3")
        for key in "abc":
            client.put_object(Bucket=bucket, Key=key, Body=b"{}")
    assert seen == [["a"], ["a", "b", "c"]]


def test_nothing_passes_a_closed_gate(aws, bucket, monkeypatch):
    with Gate(aws.url) as gate:
        gate.at(calls("s3:PutObject"), gate.close)
        monkeypatch.setenv("AWS_ENDPOINT_URL", gate.url)
        with pytest.raises(BotoCoreError):
            sdk("s3").put_object(Bucket=bucket, Key=KEY, Body=b"{}")
    assert aws.objects(bucket) == {}


@pytest.fixture
def through(aws, bucket, monkeypatch):
    """A commit's store behind a gate where the first matching call meets a fault."""

    def store(action: str, fault: Fault) -> S3Store:
        gate = Gate(aws.url, once(calls(action), fault), stall_seconds=0.1).__enter__()
        monkeypatch.setenv("AWS_ENDPOINT_URL", gate.url)
        gates.append(gate)
        return S3Store(Clients(Access(bucket=bucket, region="us-east-1")))

    gates: list[Gate] = []
    yield store
    for gate in gates:
        gate.__exit__()


@pytest.mark.parametrize("fault", Fault)
def test_store_reads_whole_objects(aws, through, bucket, fault):
    aws.client("s3").put_object(Bucket=bucket, Key=KEY, Body=b'{"write": 1}')
    found = through("s3:GetObject", fault).get(KEY)
    assert found is not None
    assert found[0] == b'{"write": 1}'


@pytest.mark.parametrize(("fault", "created"), [(Fault.RESET, True), (Fault.DROP, False), (Fault.CUT, False)])
def test_store_creates_once(aws, through, bucket, fault, created):
    store = through("s3:PutObject", fault)
    assert (store.create(KEY, b"{}") is not None) == created
    assert aws.objects(bucket) == {KEY: b"{}"}
