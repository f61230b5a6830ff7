"""Airflow starts the deployed state machine, which retries, refuses overlaps and calls for help by itself.

STATE_MACHINE is the stack's output StateMachineArn. The sensor gives its slot back between two looks.
The time of the schedule is the load's name: a start that is made again is the same load.
"""

import os
from datetime import UTC, datetime

from airflow.providers.amazon.aws.operators.step_function import StepFunctionStartExecutionOperator
from airflow.providers.amazon.aws.sensors.step_function import StepFunctionExecutionSensor
from airflow.sdk import dag

STATE_MACHINE = os.environ["LAKEWRITER_STATE_MACHINE"]


@dag(
    schedule="0 6 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["lakewriter"],
)
def lakewriter_state_machine():
    start = StepFunctionStartExecutionOperator(
        task_id="start",
        state_machine_arn=STATE_MACHINE,
        state_machine_input={"scheduled_at": "{{ logical_date.strftime('%Y-%m-%dT%H:%M:%SZ') }}"},
    )
    StepFunctionExecutionSensor(task_id="wait", execution_arn=start.output, poke_interval=30, mode="reschedule")


lakewriter_state_machine()
