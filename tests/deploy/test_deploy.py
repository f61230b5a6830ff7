"""The assembly that was checked, deployed, deployed again, loaded into and destroyed."""

import io
import json
import re
import zipfile
from typing import Any

import pytest

from tests.deploy.conftest import Deployment, Destruction, Load
from tests.deploy.lakes import DESTINATION, PIPELINE, STACKS
from tests.deploy.remains import named

pytestmark = [pytest.mark.synth, pytest.mark.spark]

# What the vendor's form asks, and the same for the party that runs loads from elsewhere.
GIVEN = {
    "S3BucketName": "acme-lake",
    "BucketRegion": "us-east-1",
    "S3PathPrefix": "data/production",
    "IAMRoleARN": "arn:aws:iam::123456789012:role/lakewriter-flights-prod-destination-SupaflowConsumerRole",
    "ExternalID": "acme-flights-2f61c7d0",
    "TableFormat": "PARQUET",
    "UpdateAWSGlueCatalog": "true",
    "PartitionStrategy": "HOUR",
    "FileNamePattern": "part-{supa_job_id}-{seq}",
    "GlueDatabasePrefix": "supaflow",
    "IAMRoleARNLaptop": "arn:aws:iam::123456789012:role/lakewriter-flights-prod-destination-LaptopConsumerRole",
    "ExternalIDLaptop": "acme-loads-90b3",
    "JobRoleARN": "arn:aws:iam::123456789012:role/lakewriter-flights-prod-destination-JobRole",
}
KEPT = {
    "applications": ["lakewriter-flights-prod"],
    "buckets": ["acme-lake", "lakewriter-flights-prod-destination-accesslogs"],
    "databases": ["supaflow_nyc_public"],
    "keys": ["alive"],
    "log groups": [
        "/aws/vendedlogs/states/lakewriter-flights-prod",
        "lakewriter-flights-prod-pipeline-JobLogs",
    ],
    "objects": ["data/production/supaflow_nyc_public/airlines"],
}
"""Data, and logs, which tell what the pipeline did; nobody's access to either."""
GONE = {
    "queues": ["lakewriter-flights-prod-pipeline-DeadLetters"],
    "roles": [
        "lakewriter-flights-prod-destination-JobRole",
        "lakewriter-flights-prod-destination-LaptopConsumerRole",
        "lakewriter-flights-prod-destination-SupaflowConsumerRole",
        "lakewriter-flights-prod-pipeline-LoadPermissionsRoleBA7DB9A4",
        "lakewriter-flights-prod-pipeline-ReleasesRole0CDD5AF5",
        "lakewriter-flights-prod-pipeline-ReleasesStartsBCA94DD3",
        "lakewriter-flights-prod-pipeline-SilenceRole8F97D860",
        "lakewriter-flights-prod-pipeline-SilenceStartsA2CA51B6",
        "lakewriter-flights-prod-pipeline-StartsRoleD4D11555",
    ],
    "schedules": ["lakewriter-flights-prod-pipeline-StartsScheduleF4274947"],
    "state machines": [
        "lakewriter-flights-prod-pipeline-LoadsStateMachine40117ABB",
        "lakewriter-flights-prod-pipeline-ReleasesHandover75B124D2",
        "lakewriter-flights-prod-pipeline-SilenceWatch26122427",
    ],
    "topics": ["lakewriter-flights-prod-pipeline-AlarmsEmailTopic87A53BAC"],
}


def test_outputs(deployment: Deployment) -> None:
    found = deployment.outputs[DESTINATION].items()
    assert {key: named(value) for key, value in found if not key.startswith("PublishOutput")} == GIVEN
    assert sorted(deployment.outputs[PIPELINE]) == ["ApplicationId", "JobLogGroup", "StateMachineArn"]


def start_of_job(deployment: Deployment) -> dict[str, Any]:
    """The parameters of StartJobRun, as the deployed state machine has them."""
    arn = deployment.outputs[PIPELINE]["StateMachineArn"]
    machine = deployment.aws.client("stepfunctions").describe_state_machine(stateMachineArn=arn)
    states = json.loads(machine["definition"])["States"].values()
    return next(dict(state["Parameters"]) for state in states if "startJobRun" in state.get("Resource", ""))


def test_loads_are_of_this_application_and_role(deployment: Deployment) -> None:
    run = start_of_job(deployment)
    application = deployment.aws.client("emr-serverless").get_application(applicationId=run["ApplicationId"])
    assert run["ApplicationId"] == deployment.outputs[PIPELINE]["ApplicationId"]
    assert run["ExecutionRoleArn"] == deployment.outputs[DESTINATION]["JobRoleARN"]
    assert application["application"]["releaseLabel"] == "emr-spark-8.1.0"


def test_loads_run_what_was_published(deployment: Deployment) -> None:
    driver = start_of_job(deployment)["JobDriver"]["SparkSubmit"]
    found = re.findall(r"s3://([^/]+)/([^\s,#]+)", f"{driver['EntryPoint']} {driver['SparkSubmitParameters']}")
    s3 = deployment.aws.client("s3")
    bodies = [s3.get_object(Bucket=bucket, Key=key)["Body"].read() for bucket, key in found]
    assert bodies[0] == (deployment.bundle / "entry.py").read_bytes()
    assert bodies[1:3] == [(deployment.bundle / name).read_bytes() for name in ("job.zip", "dependencies-x86_64.zip")]
    assert zipfile.ZipFile(io.BytesIO(bodies[3])).namelist() == ["lake.yaml"]


def test_schedule_starts_the_loads(deployment: Deployment) -> None:
    scheduler = deployment.aws.client("scheduler")
    [found] = scheduler.list_schedules(NamePrefix=PIPELINE)["Schedules"]
    schedule = scheduler.get_schedule(Name=found["Name"], GroupName=found["GroupName"])
    assert schedule["Target"]["Arn"] == deployment.outputs[PIPELINE]["StateMachineArn"]
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("cron(30 6 * * ? *)", "ENABLED")


def test_again_changes_nothing(deployment: Deployment) -> None:
    assert re.findall(r"✅  (.+)", deployment.first) == list(STACKS)
    assert re.findall(r"✅  (.+)", deployment.again) == [f"{stack} (no changes)" for stack in STACKS]
    first, again = deployment.events
    assert first == again


def test_load(load: Load) -> None:
    assert (load.report["status"], [table["rows"] for table in load.report["tables"]]) == ("done", [3])
    [file] = [key for key in load.objects if "/_lakewriter/" not in key]
    assert file == load.report["tables"][0]["keys"][0]


def test_load_uses_the_role_for_everything(deployment: Deployment, load: Load) -> None:
    assumed = {resource for action, resource, _ in load.calls if action == "sts:AssumeRole"}
    assert assumed == {deployment.outputs[DESTINATION]["IAMRoleARNLaptop"]}
    assert {service for service, key in load.keys if key == "testing"} == {"sts"}
    assert {service for service, key in load.keys if key != "testing"} == {"s3", "glue"}


def test_load_meets_no_404_of_an_object(load: Load) -> None:
    # S3 says 404 only to whoever may list the whole bucket, and no role of ours may.
    missing = {(action, status) for action, _, status in load.calls if status in (403, 404)}
    assert missing == {("s3:GetObject", 403)}


def test_table_is_in_the_database_of_the_stack(deployment: Deployment, load: Load) -> None:
    glue = deployment.aws.client("glue")
    database = glue.get_database(Name="supaflow_nyc_public")["Database"]
    table = glue.get_table(DatabaseName="supaflow_nyc_public", Name="airlines")["Table"]
    assert database["LocationUri"] == "s3://acme-lake/data/production/supaflow_nyc_public"
    assert table["StorageDescriptor"]["Location"] == f"{database['LocationUri']}/airlines"
    assert "glue:CreateDatabase" not in {action for action, *_ in load.calls}


def test_protected_stack_stays(destruction: Destruction) -> None:
    code, printed = destruction.refused
    assert code == 1
    assert f"✅  {PIPELINE}: destroyed" in printed
    assert f"Stack [{DESTINATION}] cannot be deleted while TerminationProtection is enabled" in printed


def test_what_outlives_the_stacks(destruction: Destruction) -> None:
    assert destruction.done[0] == 0, destruction.done[1]
    assert destruction.after == KEPT
    went = {
        kind: [name for name in names if name not in KEPT.get(kind, [])] for kind, names in destruction.before.items()
    }
    assert {kind: names for kind, names in went.items() if names} == GONE
