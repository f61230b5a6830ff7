"""A deployment that is wrong, and what is said of it."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import Deployment, Schedule, Spark, Worker
from tests.dialects.files import lake

USER = "arn:aws:iam::999999999999:user/abc0-s"
SUPAFLOW = {"vendor": "supaflow", "external_id": "id-1"}
AIRBYTE = {"vendor": "airbyte-cloud"}
HOST = "arn:aws:iam::123456789012:role/Host"
CLUSTER = "arn:aws:eks:us-east-1:123456789012:cluster/tools"
PROVIDER = "arn:aws:iam::123456789012:oidc-provider/oidc.eks.us-east-1.amazonaws.com/id/A1"
PODS = {"namespace": "airbyte", "service_account": "airbyte-admin"}
NETWORK = {"subnet_ids": ["subnet-1"], "security_group_ids": ["sg-1"]}

PROBLEMS: list[tuple[dict[str, Any], str]] = [
    # the deployment, its one problem
    ({"scedule": {}}, "deployment.scedule: unknown key, with value an empty mapping; did you mean 'schedule'?"),
    ({"schedule": {"crom": "x", "rate": "1 hour"}}, "deployment.schedule.crom: unknown key, with value 'x'; did you "
     "mean 'cron'?"),
    ({"spark": {"drivr": {}}}, "deployment.spark.drivr: unknown key, with value an empty mapping; did you mean "
     "'driver'?"),
    ({"spark": {"driver": {"memry": "7G"}}}, "deployment.spark.driver.memry: unknown key, with value '7G'; did you "
     "mean 'memory'?"),
    ({"trust": [SUPAFLOW | {"acces": "read"}]}, "deployment.trust.0.acces: unknown key, with value 'read'; did you "
     "mean 'access'?"),
    ({"snowflake": {"compute": {"iam_user": USER}}}, f"deployment.snowflake.compute.iam_user: unknown key, with value "
     f"{USER!r}; did you mean 'iam_user_arn'?"),
    ({"existing": {"bukket": True}}, "deployment.existing.bukket: unknown key, with value true; did you mean "
     "'bucket'?"),
    ({"network": NETWORK | {"vpc": "vpc-1"}}, "deployment.network.vpc: unknown key, with value 'vpc-1'; known keys: "
     "security_group_ids, subnet_ids."),
    ({"alarms": {"mail": "a@b.c"}}, "deployment.alarms.mail: unknown key, with value 'a@b.c'; did you mean 'email'?"),
    ({"account": 123456789012}, "deployment.account: 123456789012: expected text, in quotes."),
    ({"account": "12345"}, "deployment.account: '12345': expected 12 digits, in quotes."),
    ({"stages": {"Prod": {}}}, "deployment.stages.Prod: stage 'Prod': expected at most 16 lower-case letters and "
     "digits, a letter first."),
    ({"encryption": "KMS"}, "deployment.encryption: 'KMS' is not allowed; expected 'SSE-S3' or 'SSE-KMS'; did you mean "
     "'SSE-KMS'?"),
    ({"existing": {"kms_key_arn": "alias/lake"}}, "deployment.existing.kms_key_arn: 'alias/lake': expected a key's "
     "ARN such as 'arn:aws:kms:us-east-1:123456789012:key/0f1e2d3c'."),
    ({"role_path": "lake"}, "deployment.role_path: 'lake': expected a path such as '/teams/data/'."),
    ({"abort_incomplete_uploads_days": 0}, "deployment.abort_incomplete_uploads_days: 0: expected at least 1."),
    ({"destroy_data": True, "protect": True},
     "deployment.destroy_data: 'destroy_data' needs 'protect: false' beside it."),
    # schedule
    ({"schedule": {}}, "deployment.schedule: expected either 'cron' or 'rate'."),
    (
        {"schedule": {"cron": "0 * * * ? *", "rate": "1 hour"}},
        "deployment.schedule.cron: expected either 'cron' or 'rate', got both.",
    ),
    ({"schedule": {"cron": "0 * * * *"}}, "deployment.schedule.cron: 'cron' has 5 fields in '0 * * * *'; expected six, "
     "such as '0 * * * ? *'."),
    ({"schedule": {"rate": "hourly"}}, "deployment.schedule: rate 'hourly' is not such as '15 minutes' or '1 hour'."),
    # application
    ({"spark": {"release": "8.1.0"}}, "deployment.spark.release: '8.1.0': expected an EMR release such as "
     "'emr-spark-8.1.0'."),
    ({"spark": {"architecture": "arm64"}}, "deployment.spark.architecture: 'arm64' is not allowed; expected 'X86_64' "
     "or 'ARM64'; did you mean 'ARM64'?"),
    ({"spark": {"executor": {"memory": "14 GB"}}}, "deployment.spark.executor.memory: '14 GB': expected whole "
     "gigabytes such as '14G'."),
    ({"spark": {"executor": {"cores": 3}}}, "deployment.spark.executor.cores: 3 is not allowed; expected 1, 2, 4, 8 or "
     "16."),
    ({"network": {"subnet_ids": ["subnet-1"]}}, "deployment.network.security_group_ids: is required."),
    ({"alarms": {"topic_arn": "arn:aws:sns:us-east-1:123456789012:t", "email": "a@b.c"}},
     "deployment.alarms.topic_arn: expected either 'topic_arn' or 'email', got both."),
    ({"alarms": {"monthly_budget_usd": 100}}, "deployment.alarms.monthly_budget_usd: 'monthly_budget_usd' needs "
     "somebody to notify; give 'email' or 'topic_arn' beside it."),
    # Lake Formation
    ({"trust": [SUPAFLOW | {"lf_tags": {"domain": "crm"}}]}, "deployment: 'lake_formation' is off, and "
     "'supaflow' has 'lf_tags', by which Lake Formation grants; set it to true."),
    ({"lake_formation": {"tags": {}}}, "deployment.lake_formation.tags: expected one to 5 LF-tags, "
     "each a key and a value in lower-case letters, digits, blanks and _.:/=+-@%."),
    ({"lake_formation": {"tags": {"Domain": "crm"}}}, "deployment.lake_formation.tags: expected one to 5 "
     "LF-tags, each a key and a value in lower-case letters, digits, blanks and _.:/=+-@%."),
    ({"lake_formation": {"create_tags": True}}, "deployment.lake_formation.tags: is required."),
    # replication
    ({"replication": {"bucket": "acme-lake-west"}, "versioning": False}, "deployment.replication: 'replication' needs "
     "versions of objects; leave out 'versioning: false'."),
    ({"replication": {"bucket": "acme-lake-west"}, "existing": {"bucket": True}}, "deployment.replication: "
     "'replication' is of a bucket that the stack makes; have this one's owner replicate it."),
    ({"replication": {"bucket": "acme-lake-west"}, "encryption": "SSE-KMS"}, "deployment.replication: 'replication' "
     "needs 'kms_key_arn', the replica's key; expected a key for both buckets or for neither."),
    # trust
    ({"trust": [{"external_id": "id-1"}]}, "deployment.trust.0: expected 'vendor', 'principal', 'identity' or "
     "'service'."),
    ({"trust": [{"service": "redshift"}]}, "deployment.trust.0: service 'redshift' only reads: set access: read."),
    ({"trust": [{"service": "redshift", "access": "read", "vendor": "supaflow"}]},
     "deployment.trust.0.service: 'service' takes the role; leave out 'vendor', 'principal' and 'identity'."),
    ({"trust": [SUPAFLOW | {"vendor": "supafow"}]}, "deployment.trust.0.vendor: 'supafow' is not allowed; expected "
     "'supaflow', 'airbyte-cloud' or 'heropixel-cloud'; did you mean 'supaflow'?"),
    ({"trust": [{"principal": USER, "external_id": "id-1"}]},
     "deployment.trust.0.principal: 'principal' needs a 'name' for its role."),
    ({"trust": [{"identity": {"ec2": HOST}}]}, "deployment.trust.0.identity: 'identity' needs a 'name' for its role."),
    ({"trust": [{"vendor": "supaflow"}]}, "deployment.trust.0: 'external_id' is required: the party gives it when it "
     "takes the role."),
    ({"trust": [SUPAFLOW | {"identity": {"ec2": HOST}}]}, "deployment.trust.0.external_id: 'external_id' is given by "
     "who takes a role; leave it out beside 'identity'."),
    ({"trust": [{"principal": USER, "identity": {"ec2": HOST}, "name": "a"}]},
     "deployment.trust.0.principal: expected either 'principal' or 'identity', got both."),
    ({"trust": [AIRBYTE | {"identity": {}}]}, "deployment.trust.0.identity: expected either 'ec2' or "
     "'eks_pod_identity' or 'irsa'."),
    ({"trust": [AIRBYTE | {"identity": {"ec2": HOST, "eks_pod_identity": PODS | {"cluster": CLUSTER}}}]},
     "deployment.trust.0.identity.ec2: expected either 'ec2' or 'eks_pod_identity' or 'irsa', got both."),
    *(({"trust": [AIRBYTE | {"identity": given}]}, f"deployment.trust.0.identity.{problem}") for given, problem in (
        ({"ec2": "Host"}, "ec2: 'Host': expected a role's ARN such as 'arn:aws:iam::123456789012:role/Host'."),
        ({"ec2": USER}, f"ec2: {USER!r}: expected a role's ARN such as 'arn:aws:iam::123456789012:role/Host'."),
        ({"eks_pod_identity": PODS}, "eks_pod_identity.cluster: is required."),
        ({"eks_pod_identity": PODS | {"cluster": "tools"}}, "eks_pod_identity.cluster: 'tools': expected a cluster's "
         "ARN such as 'arn:aws:eks:us-east-1:123456789012:cluster/tools'."),
        ({"eks_pod_identity": PODS | {"cluster": CLUSTER, "namespace": "*"}}, "eks_pod_identity.namespace: '*': "
         "expected a name of Kubernetes, in lower-case letters, digits and '-'."),
        ({"irsa": PODS | {"provider": "oidc.eks"}}, "irsa.provider: 'oidc.eks': expected a provider's ARN such as "
         "'arn:aws:iam::123456789012:oidc-provider/oidc.example.org/id/A1'."),
        ({"irsa": PODS | {"provider": PROVIDER, "service_account": "a*"}}, "irsa.service_account: 'a*': expected a "
         "name of Kubernetes, in lower-case letters, digits, '-' and '.'."),
    )),
    ({"trust": [{"principal": "*", "name": "x", "external_id": "id-1"}]}, "deployment.trust.0.principal: '*': expected "
     "the ARN of one role, user or account root, without '*'."),
    ({"trust": [SUPAFLOW | {"external_id": "a b"}]}, "deployment.trust.0.external_id: (not shown): expected 2 to 1224 "
     "letters, digits and +=,.@:/-_ without spaces around them."),
    ({"trust": [SUPAFLOW | {"external_id": "${secret:x}"}]}, "deployment.trust.0.external_id: (not shown): a trust "
     "policy shows its external id; expected a literal, ${ssm:NAME} or ${env:NAME}."),
    ({"trust": [SUPAFLOW | {"earlier_external_ids": ["a b"]}]}, "deployment.trust.0.earlier_external_ids: (not shown): "
     "expected 2 to 1224 letters, digits and +=,.@:/-_ without spaces around them."),
    *(({"trust": [SUPAFLOW | {"external_id": "id-1", "earlier_external_ids": ids}]},
       "deployment.trust.0.earlier_external_ids: 'earlier_external_ids' has an id twice, or that of 'external_id'; "
       "expected different ones.") for ids in (["id-1"], ["id-2", "id-2"])),
    ({"trust": [SUPAFLOW, SUPAFLOW]},
     "deployment.trust: two entries of 'trust' make the role 'supaflow'; give one another 'name'."),
    ({"trust": [SUPAFLOW | {"access": "all"}]}, "deployment.trust.0.access: 'all' is not allowed; expected 'write', "
     "'read' or 'load'."),
    ({"trust": [SUPAFLOW | {"paths": ["a"], "tables": ["a.b"]}]},
     "deployment.trust.0.tables: expected either 'tables' or 'paths', got both."),
    ({"trust": [SUPAFLOW | {"paths": ["a"], "access": "load"}]}, "deployment.trust.0.paths: 'access: load' does all "
     "that a load does; leave out 'tables', 'paths' and 'databases'."),
    *(({"trust": [SUPAFLOW | {"paths": [path]}]}, f"deployment.trust.0.paths.0: {path!r}: expected a folder of the "
      "party's own: 'crm' below the destination's prefix, or '/crm' below the bucket.")
      for path in ("a/*", "a/../b", "_lakewriter", "a/_lakewriter", "/", "s3://acme-lake/a")),
    ({"iam_user": {"tables": ["a.b*"]}}, "deployment.iam_user.tables.0: 'a.b*': expected a table such as "
     "'schema.table', or all of a schema's: 'schema.*'."),
    ({"snowflake": {"catalog": {"iam_user_arn": "abc0-s"}}}, "deployment.snowflake.catalog.iam_user_arn: 'abc0-s': "
     "expected the ARN that Snowflake printed, without '*'."),
    ({"snowflake": {"catalog": {"external_id": "x"}}}, "deployment.snowflake.catalog.external_id: (not shown): "
     "expected 2 to 1224 letters, digits and +=,.@:/-_ without spaces around them."),
]  # fmt: skip


@pytest.mark.parametrize(("deployment", "problem"), PROBLEMS)
def test_problems(tmp_path: Path, deployment: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecInvalidError) as caught:
        load(lake(tmp_path, top={"deployment": deployment}))
    assert [line.split(": ", 1)[1] for line in caught.value.problems] == [problem]


def test_defaults_fit_the_first_quota_of_an_account() -> None:
    found = Deployment()
    assert found.spark.vcpus == 14
    assert found.account_vcpu_quota == 16


@pytest.mark.parametrize(
    ("given", "expression"),
    [({"cron": "0 6 * * ? *"}, "cron(0 6 * * ? *)"), ({"rate": "15 minutes"}, "rate(15 minutes)")],
)
def test_expression_of_the_scheduler(given: dict[str, str], expression: str) -> None:
    assert Schedule.model_validate(given).expression == expression


def test_vcpus_of_a_load() -> None:
    assert Spark(driver=Worker(cores=4), executor=Worker(cores=8), max_executors=10).vcpus == 84
