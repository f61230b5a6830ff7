"""Airflow runs a load where its worker runs: ``lakewriter`` is on the worker's PATH, or in LAKEWRITER.

A retry of the task has the same run id, so it is the same load and goes on with it. Exit codes: docs/orchestrators.md.
"""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import dag, task

LAKEWRITER = os.environ.get("LAKEWRITER", "lakewriter")
LAKE = os.environ.get("LAKE", "/opt/lake/lake.yaml")


@dag(
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["lakewriter"],
)
def lakewriter_local():
    @task(retries=3, retry_delay=timedelta(minutes=2), retry_exponential_backoff=True)
    def load(run: str) -> dict:
        command = [LAKEWRITER, "run", LAKE, "--run-id", f"lakewriter_local/{run}", "--json"]
        # What standard error says goes to the task's log.
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        report = json.loads(done.stdout)
        error = report["error"]
        if error is None:
            return {"job_id": report["job_id"], "rows": sum(table["rows"] for table in report["tables"])}
        said = f"{error['code']}: {error['message']} {error['remedy']}"
        # Only what a retry can help is tried again.
        raise (AirflowException if error["transient"] else AirflowFailException)(said)

    load("{{ run_id }}")


lakewriter_local()
