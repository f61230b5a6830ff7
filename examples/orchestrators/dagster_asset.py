"""Dagster runs a load where its step runs: ``lakewriter`` is on the PATH, or in LAKEWRITER.

A retry of the step has the same run id, so it is the same load and goes on with it. Exit codes: docs/orchestrators.md.
"""

import json
import os
import subprocess

import dagster as dg

LAKEWRITER = os.environ.get("LAKEWRITER", "lakewriter")
LAKE = os.environ.get("LAKE", "/opt/lake/lake.yaml")


@dg.asset
def lake(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    command = [LAKEWRITER, "run", LAKE, "--run-id", context.run.run_id, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    report = json.loads(done.stdout)
    error = report["error"]
    if error is None:
        return dg.MaterializeResult(
            metadata={
                "job_id": report["job_id"],
                "rows": sum(table["rows"] for table in report["tables"]),
                "bytes": sum(table["bytes"] for table in report["tables"]),
            }
        )
    said = f"{error['code']}: {error['message']} {error['remedy']}"
    if error["transient"]:
        context.log.warning(said)
        raise dg.RetryRequested(max_retries=3, seconds_to_wait=int(os.environ.get("LAKEWRITER_RETRY_SECONDS", "120")))
    raise dg.Failure(said, allow_retries=False)


defs = dg.Definitions(
    assets=[lake],
    schedules=[dg.ScheduleDefinition(name="daily", target=dg.AssetSelection.assets(lake), cron_schedule="0 6 * * *")],
)
