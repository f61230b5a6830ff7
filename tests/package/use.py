"""An installed Lakewriter, used in an empty folder outside the repository."""

import json
from typing import Any

from lakewriter import __version__
from tests.package.environments import Environment
from tests.support.server import StrictAws

LAKE = """
pipeline: flights
destination:
  type: supaflow-s3-data-lake
  s3_bucket_name: acme-lake
  bucket_region: us-east-1
  s3_path_prefix: data/production
  update_aws_glue_catalog: true
tables:
  - {table: airlines, schema: nyc, read: {format: csv, path: airlines.csv, options: {header: true}}}
"""


def use(environment: Environment, aws: StrictAws) -> None:
    """Check, plan, run and verify; the bucket ``acme-lake`` is there and empty."""
    (environment.work / "lake.yaml").write_text(LAKE, "utf-8")
    (environment.work / "airlines.csv").write_text("carrier,name\nAA,American\nUA,United\n", "utf-8")
    assert _lakewriter(environment, "--version") == f"lakewriter, version {__version__}\n"
    home = environment.run(str(environment.python), "-c", "import lakewriter; print(lakewriter.__file__)").stdout
    assert home.startswith(str(environment.packages)), home
    _lakewriter(environment, "check", "lake.yaml")
    plan = _read(environment, "plan", "lake.yaml", "--json")
    assert len(plan["tables"]) == 1
    report = _read(environment, "run", "lake.yaml", "--job-id", "first", "--json")
    assert (report["status"], report["tables"][0]["rows"]) == ("done", 2)
    _lakewriter(environment, "verify", "lake.yaml", "first")
    assert sum(key.endswith(".parquet") for key in aws.objects("acme-lake")) == 1


def _read(environment: Environment, *arguments: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(_lakewriter(environment, *arguments))
    return read


def _lakewriter(environment: Environment, *arguments: str) -> str:
    """What the command prints; it has to end with 0."""
    done = environment.run(str(environment.home / "bin" / "lakewriter"), *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
