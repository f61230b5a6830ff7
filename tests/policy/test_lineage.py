"""What ``lineage`` asks of the policies: nothing, but for the secret of its key."""

from pathlib import Path

import pytest

from lakewriter.policy.role_documents import Who, make_documents
from tests.policy.airbyte import airbyte, table
from tests.policy.lakes import ARNS, statement

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:marquez-Ab12cd"
TABLES = {"tables": [table()]}


@pytest.mark.parametrize("who", list(Who))
@pytest.mark.parametrize("to", ["log", "https://marquez.example.com"])
def test_events_need_no_permission(tmp_path: Path, who: Who, to: str) -> None:
    top = TABLES | {"deployment": {"permissions_boundary_arn": "arn:aws:iam::123456789012:policy/Boundary"}}
    plain = airbyte(tmp_path, top=top)
    lake = airbyte(tmp_path, top=top | {"lineage": {"to": to}})
    assert lake.spec.lineage is not None
    assert make_documents(lake.spec, lake.deployment, who, ARNS) == make_documents(
        plain.spec, plain.deployment, who, ARNS
    )


def test_job_reads_the_secret_of_the_key(tmp_path: Path) -> None:
    lineage = {"to": "https://marquez.example.com", "api_key": f"${{secret:{SECRET}:key}}"}
    lake = airbyte(tmp_path, top=TABLES | {"lineage": lineage})
    documents = make_documents(lake.spec, lake.deployment, Who.JOB, ARNS)
    assert documents["Secrets"]["Statement"] == [statement("ReadSecrets", ["secretsmanager:GetSecretValue"], [SECRET])]
