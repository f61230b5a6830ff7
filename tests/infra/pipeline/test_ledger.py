"""aws_claims.csv has a row for what the templates take for granted about AWS."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infra.claims import FIELDS, read_by_name
from tests.infra.pipeline.conftest import LAKE, Synthesised
from tests.infra.pipeline.executions import JOB_ROLE, definition_of

pytestmark = pytest.mark.synth

MAPS = ("Tags", "Properties")
"""Fields whose keys are the caller's to choose."""
OF_KEYS = {"DiskEncryptionConfiguration", "EncryptionKeyArn"}
UNPROVEN = {*OF_KEYS, "Tags", "Mode", "RetryPolicy", "MaxFailedAttemptsPerHour"}


def list_fields(parameters: Any) -> Iterator[str]:
    """The names of fields, nested ones too, without the suffix of JSONPath."""
    if isinstance(parameters, list):
        for each in parameters:
            yield from list_fields(each)
    if isinstance(parameters, Mapping):
        for name, value in parameters.items():
            yield name.removesuffix(".$")
            if name not in MAPS:
                yield from list_fields(value)


def find_job_runs(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The parameters of every state that starts a job run."""
    states = json.loads(definition_of(template))["States"].values()
    return [
        state["Parameters"] for state in states if state.get("Resource", "").endswith("emr-serverless:startJobRun.sync")
    ]


def test_every_field_of_a_job_run_has_its_row(
    plain: dict[str, Any], full: dict[str, Any], streaming: dict[str, Any]
) -> None:
    rows = read_by_name(FIELDS)
    sent = {
        name for template in (plain, full, streaming) for run in find_job_runs(template) for name in list_fields(run)
    }
    assert sent == set(rows)
    assert {name for name, row in rows.items() if row.is_unproven} == UNPROVEN


def test_a_plain_start_sends_nothing_that_is_unproven(synthesised: Synthesised) -> None:
    runs = find_job_runs(synthesised(spark={"plain_start": True}, encryption="SSE-KMS"))
    assert len(runs) == 1
    assert UNPROVEN & {name for run in runs for name in list_fields(run)} == set()
    assert LAKE["pipeline"] in runs[0]["Name"]
    # A stream without its mode is a run of a week, the longest that EMR Serverless has for one that ends.
    stream, canary = find_job_runs(
        synthesised("dev", spark={"plain_start": True, "mode": "STREAMING"}, encryption="SSE-KMS")
    )
    assert UNPROVEN & {name for run in (stream, canary) for name in list_fields(run)} == set()
    assert [run["ExecutionTimeoutMinutes"] for run in (stream, canary)] == [7 * 24 * 60, 180]


def test_a_load_sends_one_that_is_unproven(plain: dict[str, Any]) -> None:
    (run,) = find_job_runs(plain)
    assert UNPROVEN & set(list_fields(run)) == {"Tags"}


def test_workers_disks_are_under_the_key(synthesised: Synthesised, full: dict[str, Any]) -> None:
    """Those of a stream and of its canary, too. The key is another stack's output."""
    stream = synthesised("dev", spark={"mode": "STREAMING"}, encryption="SSE-KMS")
    runs = [*find_job_runs(full), *find_job_runs(stream)]
    keys = [run["ConfigurationOverrides"]["DiskEncryptionConfiguration"]["EncryptionKeyArn"] for run in runs]
    assert keys == [JOB_ROLE] * 3
