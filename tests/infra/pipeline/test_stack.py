"""The template of the pipeline's stack: much of it the emulator ignores."""

import json

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Template

from tests.infra.pipeline.conftest import LAKE, add_stack
from tests.infra.pipeline.deployments import ALL
from tests.infra.pipeline.templates import find_states, has, job_run, loads, properties, statements

pytestmark = pytest.mark.synth


STATEFUL = {"JobLogs": "Logs::LogGroup", "LoadLogs": "Logs::LogGroup"}


@pytest.mark.parametrize(("name", "kind"), STATEFUL.items())
def test_logical_ids_of_what_holds_data(plain, name, kind):
    found = plain["Resources"][name]
    assert (found["Type"], found["DeletionPolicy"], found["UpdateReplacePolicy"]) == (
        f"AWS::{kind}",
        "RetainExceptOnCreate",
        "Retain",
    )


def test_all_that_holds_data_has_its_logical_id(full):
    kinds = {f"AWS::{kind}" for kind in STATEFUL.values()} | {"AWS::S3::Bucket", "AWS::DynamoDB::Table"}
    assert {name for name, each in full["Resources"].items() if each["Type"] in kinds} == set(STATEFUL)


def test_a_stage_that_is_thrown_away_leaves_nothing(streaming):
    assert [
        name for name, each in streaming["Resources"].items() if each.get("DeletionPolicy", "Delete") != "Delete"
    ] == []


def test_a_schedule_that_is_taken_away_leaves_nothing(plain, synthesised):
    without = synthesised()
    gone = {name: each for name, each in plain["Resources"].items() if name not in without["Resources"]}
    kinds = {each["Type"].partition("::")[2] for each in gone.values()}
    assert {"SQS::Queue", "Scheduler::Schedule", "Scheduler::ScheduleGroup", "IAM::Role"} <= kinds
    assert {each.get("DeletionPolicy", "Delete") for each in gone.values()} == {"Delete"}


def test_application(plain):
    streams = ["STDOUT", "STDERR"]
    assert properties(plain, "EMRServerless::Application") == [
        {
            "Name": "lakewriter-flights-prod",
            "Type": "SPARK",
            "ReleaseLabel": "emr-spark-8.1.0",
            "Architecture": "X86_64",
            "AutoStartConfiguration": {"Enabled": True},
            "AutoStopConfiguration": {"Enabled": True, "IdleTimeoutMinutes": 5},
            # A driver of 2 vCPU and 8 GB (7 and a tenth), three executors of 4 vCPU and 16 GB (12 and a tenth, and
            # four tasks of half a gigabyte).
            "MaximumCapacity": {"Cpu": "14 vCPU", "Memory": "56 GB", "Disk": "80 GB"},
            "SchedulerConfiguration": {"MaxConcurrentRuns": 1, "QueueTimeoutMinutes": 60},
            "MonitoringConfiguration": {
                "CloudWatchLoggingConfiguration": {
                    "Enabled": True,
                    "LogGroupName": {"Ref": "JobLogs"},
                    "LogTypeMap": [{"Key": f"SPARK_{each}", "Value": streams} for each in ("DRIVER", "EXECUTOR")],
                },
                "ManagedPersistenceMonitoringConfiguration": {"Enabled": True},
            },
            "Tags": [{"Key": "LakewriterStack", "Value": "lakewriter-flights-prod-pipeline"}],
        }
    ]


def test_application_in_a_network(full):
    network = {"SubnetIds": ALL["network"]["subnet_ids"], "SecurityGroupIds": ALL["network"]["security_group_ids"]}
    has(full, "EMRServerless::Application", NetworkConfiguration=network)


def test_job_run_in_batches(plain):
    state = job_run(plain)
    assert state["Resource"] == "arn:aws:states:::emr-serverless:startJobRun.sync"
    # Three hours, an hour in the queue, ten minutes over.
    assert state["TimeoutSeconds"] == (180 + 60 + 10) * 60
    parameters = state["Parameters"]
    assert {name: parameters[name] for name in ("ExecutionTimeoutMinutes", "ClientToken.$")} == {
        "ExecutionTimeoutMinutes": 180,
        "ClientToken.$": "$.name",
    }
    # BATCH is the default, and there is no retry by default.
    assert {"Mode", "RetryPolicy"} & set(parameters) == set()


def test_job_run_that_streams(streaming):
    state = job_run(streaming)
    parameters = state["Parameters"]
    assert "TimeoutSeconds" not in state
    assert {name: parameters[name] for name in ("Mode", "ExecutionTimeoutMinutes", "RetryPolicy")} == {
        "Mode": "STREAMING",
        "ExecutionTimeoutMinutes": 0,
        "RetryPolicy": {"MaxFailedAttemptsPerHour": 10},
    }


def test_canary_of_a_stream_is_a_small_run_that_ends(streaming):
    """Its failure is not started again by EMR Serverless, and it takes no executor of the stream's."""
    states = find_states(streaming)
    stream, canary = states["RunJob"], states["RunCanary"]
    assert canary["TimeoutSeconds"] == (180 + 60 + 10) * 60
    given, other = stream["Parameters"], canary["Parameters"]
    assert {key for key in given if given[key] != other.get(key)} == {
        "Mode", "ExecutionTimeoutMinutes", "RetryPolicy", "ConfigurationOverrides",
    }  # fmt: skip
    assert ("Mode" in other, other["ExecutionTimeoutMinutes"]) == (False, 180)
    conf = other["ConfigurationOverrides"]["ApplicationConfiguration"][0]["Properties"]
    named = ("spark.driver.cores", "spark.executor.cores", "spark.dynamicAllocation.maxExecutors")
    assert [conf[name] for name in named] == ["1", "1", "1"]
    (application,) = properties(streaming, "EMRServerless::Application")
    assert application["SchedulerConfiguration"]["MaxConcurrentRuns"] == 2


def test_a_load_is_named_and_a_run_that_streams_names_its_own(plain, streaming):
    called = [job_run(each)["Parameters"]["JobDriver"]["SparkSubmit"] for each in (plain, streaming)]
    assert {each["EntryPointArguments.$"] for each in called} == {"$.arguments.list"}
    named = [find_states(each)["UseArguments"]["Parameters"]["list.$"] for each in (plain, streaming)]
    assert named == [
        "States.Array('run', 'lake/lake.yaml', $.load.option, $.load.id, '--outcome', $.name)",
        "States.Array('run', 'lake/lake.yaml', $.load.option, '--outcome', $.name)",
    ]


def test_a_run_that_streams_takes_no_acceptance(plain, streaming):
    """It starts again by itself, and would accept whatever came then."""
    assert find_states(plain)["IsLoadAccepted"]["Choices"][0]["Next"] == "UseAcceptance"
    states = find_states(streaming)
    assert {"IsLoadAccepted", "UseAcceptance", "KeepAcceptance"}.isdisjoint(states)
    assert states["IsAnythingAccepted"]["Default"] == "InvalidAcceptance"
    assert states["InvalidAcceptance"]["Cause"] == "A continuous run takes no acceptance."


def test_spark_submit(full):
    parameters = job_run(full)["Parameters"]
    submit = parameters["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"].split()
    assert submit[::2] == ["--py-files", "--archives"]
    assert [each.rpartition("#")[2] for each in submit[3].split(",")] == ["dependencies", "lake"]
    (classified,) = parameters["ConfigurationOverrides"]["ApplicationConfiguration"]
    assert classified == {
        "Classification": "spark-defaults",
        "Properties": {
            "spark.driver.cores": "2",
            "spark.driver.memory": "6G",
            "spark.driver.memoryOverhead": "1024m",
            "spark.emr-serverless.driver.disk": "20G",
            "spark.executor.cores": "4",
            "spark.executor.memory": "12G",
            "spark.executor.memoryOverhead": "4096m",
            "spark.emr-serverless.executor.disk": "20G",
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.initialExecutors": "1",
            "spark.dynamicAllocation.minExecutors": "0",
            "spark.dynamicAllocation.maxExecutors": "3",
            "spark.emr-serverless.driverEnv.PYTHONPATH": "./dependencies",
            "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": "python3.11",
            "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": "python3.11",
            "spark.executorEnv.PYTHONPATH": "./dependencies",
            "spark.executorEnv.PYSPARK_PYTHON": "python3.11",
            "spark.custom": "a b",
            "spark.driver.extraJavaOptions": "-Xss4m -Duser.timezone=UTC",
            "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        },
    }


# (the mode, the servers of the file, those that its job may send secrets to)
SERVERS: list[tuple[str, str | None, str | None]] = [
    ("BATCH", None, None),
    ("BATCH", "https://s3.us-east-1.amazonaws.com", None),
    ("BATCH", "https://minio.example.com:9000/", "https://minio.example.com:9000"),
    ("STREAMING", "https://minio.example.com:9000", "https://minio.example.com:9000"),
]


@pytest.mark.parametrize(("mode", "endpoint", "trusted"), SERVERS)
def test_a_deployed_job_trusts_the_servers_of_its_file(settings_for, bundle, mode, endpoint, trusted):
    keys = {"custom_s3_endpoint": endpoint, "access_key_id": "${ssm:/id}", "secret_access_key": "${ssm:/key}"}
    destination = LAKE["destination"] | (keys if endpoint else {})
    settings = settings_for(LAKE | {"destination": destination, "deployment": {"spark": {"mode": mode}}},
                            stage="prod", bundle=bundle)  # fmt: skip
    text = json.dumps(Template.from_stack(add_stack(cdk.App(), settings)).to_json())
    assert text.replace("\\", "").count(f'driverEnv.LAKEWRITER_TRUSTED_ENDPOINTS": "{trusted}"') == (
        0 if trusted is None else 1 + (mode == "STREAMING")
    )
    assert ("TRUSTED_ENDPOINTS" in text) == (trusted is not None)


def test_whole_load_ends_in_time(full):
    machine = loads(full)
    # Two attempts of four hours and ten minutes, a minute between them, ten minutes over.
    assert f'"TimeoutSeconds": {(2 * 250 + 1 + 10) * 60}}}' in machine["DefinitionString"]["Fn::Join"][1][-1]
    assert machine["TracingConfiguration"] == {"Enabled": True}
    assert (machine["LoggingConfiguration"]["Level"], machine["LoggingConfiguration"]["IncludeExecutionData"]) == (
        "ALL",
        True,
    )


def test_schedule(plain):
    (schedule,) = properties(plain, "Scheduler::Schedule")
    target = schedule.pop("Target")
    assert schedule.pop("GroupName")["Ref"].startswith("StartsGroup")
    assert schedule == {
        "Description": "Starts the loads of flights, stage prod",
        "ScheduleExpression": "cron(0 * * * ? *)",
        "ScheduleExpressionTimezone": "Europe/Berlin",
        "State": "ENABLED",
        "FlexibleTimeWindow": {"Mode": "OFF"},
    }
    assert json.loads(target["Input"]) == {"start": "schedule", "scheduled_at": "<aws.scheduler.scheduled-time>"}
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 10, "MaximumEventAgeInSeconds": 3600}
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["DeadLetters", "Arn"]}}


def test_schedule_that_rests(full):
    flexible = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 10}
    has(full, "Scheduler::Schedule", ScheduleExpression="rate(6 hours)", State="DISABLED", FlexibleTimeWindow=flexible)


def test_encryption(plain, full):
    assert properties(plain, "SQS::Queue") == [{"MessageRetentionPeriod": 1209600, "SqsManagedSseEnabled": True}]
    (queue,), groups = properties(full, "SQS::Queue"), properties(full, "Logs::LogGroup")
    topic, application = properties(full, "SNS::Topic")[0], properties(full, "EMRServerless::Application")[0]
    event_log = application["MonitoringConfiguration"]["ManagedPersistenceMonitoringConfiguration"]
    keys = [queue["KmsMasterKeyId"], topic["KmsMasterKeyId"], event_log["EncryptionKeyArn"]]
    keys += [each["KmsKeyId"] for each in groups]
    assert len(keys) == 5
    assert all(key == keys[0] for key in keys)
    assert [each["RetentionInDays"] for each in groups] == [90, 90]


def test_outputs(plain):
    assert set(plain["Outputs"]) == {"StateMachineArn", "ApplicationId", "JobLogGroup"}


def test_qualifier_of_the_bootstrap(full):
    assert "cdk-acme-assets" in json.dumps(statements(full)["ReadArtifacts"]["Resource"])


def test_outcomes_in_a_store_elsewhere_are_not_looked_for(synthesised):
    template = synthesised(endpoint="https://s3.example.org")
    assert "ReadOutcomes" not in statements(template)
    assert job_run(template)["Next"] == "NoOutcomeRead"
