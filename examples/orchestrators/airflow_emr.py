"""Airflow starts a load on the deployed EMR Serverless application, as the stack's own state machine would.

STATE_MACHINE is the stack's output StateMachineArn. What the job needs (application, role, bundle, Spark's settings) is
read from it for each run, so that a new release needs no change here. The job has no other guard against overlapping
loads than ``max_active_runs``: leave ``deployment.schedule`` out of lake.yaml. See docs/orchestrators.md.
"""

import json
import os
from datetime import UTC, datetime, timedelta

import boto3
from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow.sdk import dag, task

STATE_MACHINE = os.environ["LAKEWRITER_STATE_MACHINE"]


def to_api(value, *, is_kept=False):
    """The fields of a state machine's task as boto3 names them; the names of Spark's settings stay."""
    if isinstance(value, dict):
        names = {name: name if is_kept else name[:1].lower() + name[1:] for name in value}
        return {names[name]: to_api(part, is_kept=name == "Properties") for name, part in value.items()}
    return [to_api(part) for part in value] if isinstance(value, list) else value


@dag(
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["lakewriter"],
)
def lakewriter_emr():
    @task
    def describe_job(run: str) -> dict:
        machine = boto3.client("stepfunctions").describe_state_machine(stateMachineArn=STATE_MACHINE)
        states = json.loads(machine["definition"])["States"].values()
        parameters = next(s["Parameters"] for s in states if "startJobRun" in s.get("Resource", ""))
        wanted = ("ApplicationId", "ExecutionRoleArn", "JobDriver", "ConfigurationOverrides")
        job = to_api({name: parameters[name] for name in wanted})
        spark = job["jobDriver"]["sparkSubmit"]
        spark.pop("entryPointArguments.$")
        spark["entryPointArguments"] = ["run", "lake/lake.yaml", "--run-id", f"lakewriter_emr/{run}"]
        return job

    job = describe_job("{{ run_id }}")
    # Every retry has the same run id, and is the same load. A failure that no retry can help fails again at once.
    EmrServerlessStartJobOperator(
        task_id="load",
        application_id=job["applicationId"],
        execution_role_arn=job["executionRoleArn"],
        job_driver=job["jobDriver"],
        configuration_overrides=job["configurationOverrides"],
        waiter_delay=30,
        waiter_max_attempts=240,
        retries=3,
        retry_delay=timedelta(minutes=2),
    )


lakewriter_emr()
