"""What is refused and what is not of destinations with variables in their paths, and of messages."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.settings import Settings
from lakewriter.deployable.network import check_network
from lakewriter.deployable.stage_overlaps import check_stages
from lakewriter.dialects.lake_yaml import load
from tests.policy.airbyte import DESTINATION, airbyte, messages, table

READ = {"format": "jdbc", "options": {"url": "jdbc:postgresql://db/crm", "dbtable": "users"}}
JDBC = (
    "tables: table 'crm.users' reads format 'jdbc', a source out of reach without a VPC; expected files in S3, or a "
    "network. Give deployment.network the subnets and security groups of a VPC with a way there, or land the data in "
    "S3 first."
)


@pytest.mark.parametrize(
    ("top", "problems"), [(messages(), []), ({}, []), ({"tables": [table(read=READ)]}, [JDBC])]
)  # messages in S3 are files like others
def test_network(tmp_path: Path, top: Any, problems: list[str]) -> None:
    lake = airbyte(tmp_path, top=top)
    assert list(check_network(Settings(lake, "prod", tmp_path))) == problems


SHARED = (
    "deployment.stages: stages 'dev' and 'prod' write to s3://acme-lake/{} and s3://acme-lake/{}; expected prefixes of "
    "which none holds the other. Give deployment.stages.prod another s3_bucket_path, or another bucket."
)
PATHS = [
    # bucket paths of dev and prod, and what they share
    ("dev", "prod", []),
    ("data", "data/prod", [SHARED.format("data", "data/prod")]),
    ("data", "data2", []),
    # keys of the first may begin with all that those of the second begin with
    ("data${NAMESPACE}", "data2", [SHARED.format("data", "data2")]),
    ("data${NAMESPACE}", "other", []),
    ("${NAMESPACE}", "data", [SHARED.format("", "data").replace("acme-lake/ ", "acme-lake ")]),
]


@pytest.mark.parametrize(("dev", "prod", "problems"), PATHS)
def test_stages_of_one_bucket(tmp_path: Path, dev: str, prod: str, problems: list[str]) -> None:
    deployment = {
        "existing": {"bucket": True},
        "stages": {name: {"destination": {"s3_bucket_path": path}} for name, path in (("dev", dev), ("prod", prod))},
    }
    content = {"pipeline": "crm", "destination": DESTINATION, "tables": [table()], "deployment": deployment}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content))
    lakes = {stage: load(tmp_path / "lake.yaml", stage=stage) for stage in ("dev", "prod")}
    assert list(check_stages(Settings(lakes["prod"], "prod", tmp_path, siblings={"dev": lakes["dev"]}))) == problems
