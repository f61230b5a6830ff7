"""What is refused of deployments that run until they are stopped, and of files without a prefix in common."""

from pathlib import Path
from typing import Any

import pytest

from infra.settings import Settings
from lakewriter.deployable.aws_names import check_region
from lakewriter.deployable.load_limits import check_continuous
from lakewriter.deployable.network import check_network
from lakewriter.deployable.stage_overlaps import check_stages
from tests.policy.estuary import binding, endless, estuary

MODE = "deployment.spark.mode is STREAMING: "
TAKEN = "expected a folder of its own, such as s3://acme-lake/_checkpoints."
FILES: list[tuple[dict[str, Any], list[str]]] = [
    ({"checkpoint": "/var/lib"}, []),
    (endless(), []),
    (endless("s3://acme-state"), []),
    (
        endless(None),
        [
            f"{MODE}a continuous run needs a place for its checkpoints. Set checkpoint: to a folder, or to any URI "
            "that Spark can write."
        ],
    ),
    (
        endless("/var/lib"),
        ["checkpoint: '/var/lib' is on this machine; expected s3://..., in a folder of the pipeline's own."],
    ),
    (
        endless("s3://acme-lake/changes/state"),
        [f"checkpoint: 's3://acme-lake/changes/state' is in the folder of table 'changes'; {TAKEN}"],
    ),
    (
        endless("s3://acme-lake/_lakewriter/state"),
        [f"checkpoint: 's3://acme-lake/_lakewriter/state' is in the folder of the job's own records; {TAKEN}"],
    ),
    (
        endless() | {"tables": [binding("changes", cursor="id")]},
        [
            f"{MODE}table 'changes' has a cursor; a continuous run uses its checkpoint. Leave cursor out, or run "
            "without --continuous."
        ],
    ),
]


@pytest.mark.parametrize(("top", "problems"), FILES)
def test_continuous(tmp_path: Path, top: Any, problems: list[str]) -> None:
    assert list(check_continuous(Settings(estuary(tmp_path, top=top), "prod", tmp_path))) == problems


def test_region_is_given(tmp_path: Path) -> None:
    assert list(check_region(Settings(estuary(tmp_path), "prod", tmp_path))) == []
    (problem,) = check_region(Settings(estuary(tmp_path, region=None), "prod", tmp_path))
    assert problem.startswith("destination.region is not given; expected the region of the bucket")


FORMATS = [({"format": "rate"}, 0), ({"format": "kafka", "options": {"subscribe": "t"}}, 1)]


@pytest.mark.parametrize(("read", "problems"), FORMATS)
def test_streams_out_of_reach(tmp_path: Path, read: dict[str, Any], problems: int) -> None:
    lake = estuary(tmp_path, top={"tables": [binding("changes", read=read)]})
    assert len(list(check_network(Settings(lake, "prod", tmp_path)))) == problems


BUCKETS = [
    # the bucket of prod; what it shares with dev
    ("acme-lake-prod", []),
    (
        "acme-lake",
        [
            "deployment.stages: stages 'dev' and 'prod' write to s3://acme-lake and s3://acme-lake; expected prefixes "
            "of which none holds the other. Give deployment.stages.prod another bucket."
        ],
    ),
]


@pytest.mark.parametrize(("bucket", "problems"), BUCKETS)
def test_stages_have_buckets_of_their_own(tmp_path: Path, bucket: str, problems: list[str]) -> None:
    """Wherever their tables are, the records of both are at the root."""
    named = {"dev": {"tables": [binding("dev/changes")]}, "prod": {"destination": {"bucket": bucket}}}
    top = {"deployment": {"stages": named}}
    lakes = {stage: estuary(tmp_path, top=top, stage=stage) for stage in named}
    assert list(check_stages(Settings(lakes["prod"], "prod", tmp_path, siblings={"dev": lakes["dev"]}))) == problems
