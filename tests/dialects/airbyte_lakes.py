"""lake.yaml files for Airbyte's and Hero Pixel's destinations."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError

START = datetime(2021, 1, 1, 2, 3, 4, 56789, UTC)
BASE: dict[str, Any] = {
    "s3_bucket_name": "testing_bucket",
    "s3_bucket_path": "data_output_path",
    "s3_bucket_region": "us-east-1",
    "format": {"format_type": "CSV"},
}
TABLE = {"table": "users", "schema": "public", "read": {"format": "csv", "path": "a.csv"}}


def lake(folder: Path, over: dict[str, Any], *, kind: str = "airbyte-s3", **top: Any) -> Path:
    """A lake.yaml whose destination is the base with ``over`` laid over it."""
    destination = {key: value for key, value in ({"type": kind} | BASE | over).items() if value is not None}
    tables = {} if "source" in top else {"tables": [TABLE]}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination} | tables | top), "utf-8")
    return path


def key(file: Path, seq: int = 0) -> str:
    """The key of a file of the first table, for an attempt ``a`` that starts at ``START``."""
    return load_spec(file).tables[0].layout.bind(job_id="j", attempt="a", start=START).object_key(seq)


def problems(file: Path) -> list[str]:
    """What is wrong with a file, without the places."""
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(file)
    return [problem.split(": ", 1)[1] for problem in caught.value.problems]


def from_vendor(folder: Path, over: dict[str, Any], *, kind: str = "airbyte-s3") -> Path:
    """A lake.yaml that names the vendor's file, which is the base with ``over`` laid over it."""
    (folder / "s3.json").write_text(json.dumps(BASE | over), "utf-8")
    path = folder / "vendor.yaml"
    content = {"pipeline": "p", "destination": {"type": kind, "config_file": "s3.json"}, "tables": [TABLE]}
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path
