"""All probes together."""

import pytest

from lakewriter.aws import Clients
from lakewriter.doctor import run_checks
from lakewriter.doctor.probe import NOTHING_TO_DO
from lakewriter.spec.access import SecretText
from tests.doctor.pipeline import CONTROL, ROLE, abort_after, checked, spec
from tests.support.server import StrictAws


def test_all_is_well(aws: StrictAws, bucket: str) -> None:
    aws.role(ROLE, "id-1")
    abort_after(aws, 30)
    findings = checked(spec(glue=True, role_arn=ROLE, external_id=SecretText("id-1")))
    again = findings.pop("second loads")
    assert (again.status, again.message) == ("warning", "each load appends all rows of nyc_public.flights again.")
    assert again.remedy == (
        "A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again. Or allow it: "
        "repeated: allow."
    )
    assert {finding.status for finding in findings.values()} == {"ok"}
    assert list(findings) == [
        "identity", "external id", "role", "bucket", "clock", "requester pays", "list", "put", "conditional write",
        "read", "multipart upload", "conditional completion", "list uploads", "abort upload", "delete", "lifecycle",
        "pending loads", "source files", "places of tables", "glue database nyc_public", "glue write nyc_public",
        "glue table nyc_public.flights",
    ]  # fmt: skip


def test_nothing_stays_behind(aws: StrictAws, bucket: str) -> None:
    checked(spec(glue=True))
    assert (aws.objects(bucket), aws.uploads(bucket)) == ({}, [])
    assert aws.client("glue").get_databases()["DatabaseList"] == []
    assert {resource.partition("/check/")[0] for action, resource, _ in aws.calls if action == "s3:PutObject"} == {
        f"arn:aws:s3:::acme-lake/{CONTROL}"
    }


def test_interrupted_doctor_clears_up(aws: StrictAws, bucket: str) -> None:
    def interrupt(**_: object) -> None:
        raise KeyboardInterrupt

    clients = Clients(spec().access)
    clients.s3.meta.events.register("before-call.s3.CompleteMultipartUpload", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_checks(spec(), clients)
    assert ("s3:PutObject", 200) in {(action, status) for action, _, status in aws.calls}
    assert (aws.objects(bucket), aws.uploads(bucket)) == ({}, [])


@pytest.mark.parametrize("action", ["sts:*", "s3:*", "s3:PutObject", "glue:*"])
def test_every_finding_has_a_remedy(aws: StrictAws, bucket: str, action: str) -> None:
    aws.role(ROLE)
    aws.deny(action)
    findings = checked(spec(glue=True, role_arn=ROLE)).values()
    assert {finding.status == "ok" for finding in findings} == {True, False}
    assert all((finding.remedy == NOTHING_TO_DO) == (finding.status == "ok") for finding in findings)
    assert all(finding.message and finding.remedy for finding in findings)
