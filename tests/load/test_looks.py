"""``plan``, and the looks of ``check`` at places, write nothing, whatever a killed load has left; what they say of the
next load is what it does."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest

from lakewriter.doctor.surroundings import LakeProbes
from lakewriter.errors import LakeError
from lakewriter.operate.planning import plan
from tests.load.lakes import BUCKET
from tests.load.test_writers import LAKES
from tests.support.call import Call
from tests.support.local_tasks import local_session

LEFT = {
    # what the load "b" was refused from on
    "nothing": None,
    "a registered attempt": lambda call: call.method == "POST" and "uploads" in call.query,
    "staged files": lambda call: call.method == "PUT" and call.key.endswith("/crm.users.json"),
    "a pending intent": lambda call: call.method == "POST" and "uploadId" in call.query,
}


def cut_off(users, at):
    """Refuse the call of load "b" and all that come after it."""
    seen: list[Call] = []

    def refuse(call, proceed):
        seen.extend([call] if seen or at(call) else [])
        return call.denied() if seen else proceed(call)

    users.aws.interceptors.append(refuse)
    # Its outcome cannot be written either.
    with suppress(LakeError):
        assert users.try_load("b", id=[2]).status == "failed"
    users.aws.interceptors.remove(refuse)
    assert seen


def is_write(call):
    if call.service == "s3":
        return call.method != "GET" and call.method != "HEAD"
    return not call.action.partition(":")[2].startswith(("Get", "List", "Search", "AssumeRole"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("kind", LAKES)
def test_looks(kind, left, tmp_path, aws, bucket):
    users = LAKES[kind](tmp_path, aws)
    users.load("a", id=[1])
    if (at := LEFT[left]) is not None:
        cut_off(users, at)
    users.write_rows(id=[2])
    before, writes = aws.objects(BUCKET), []

    def refuse(call, proceed):
        if not is_write(call):
            return proceed(call)
        writes.append((call.action, call.key))
        return call.denied()

    aws.interceptors.append(refuse)
    pipeline = users.pipeline
    (planned,) = plan(
        users.spec, job_id="b", clients=pipeline.clients, spark=lambda: local_session(2), controls=pipeline.controls
    )
    control = pipeline.first_control
    probes = LakeProbes(users.spec, pipeline.clients, control.keys, lambda: datetime.now(UTC))
    findings = list(probes.check_places())
    aws.interceptors.remove(refuse)
    assert (planned.error, [finding.status for finding in findings]) == (None, ["ok"])
    assert (writes, aws.objects(BUCKET)) == ([], before)
    (table,) = users.run("b").tables
    assert table.status in ("done", "already_done")
