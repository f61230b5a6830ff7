"""Whether OpenLineage events can be sent: a server that answers, a file that can be written, the client."""

from typing import Any

import pytest

from lakewriter.doctor.doctor import LineageProbes
from lakewriter.doctor.probe import Finding, run_probes
from lakewriter.spec.access import SecretText
from lakewriter.spec.lineage import Lineage
from tests.lineage.targets import Target, closed_port


def probed(to: str, **more: Any) -> Finding:
    settings = Lineage(to=to, endpoint="api/v1/lineage", namespace="n", timeout_seconds=1, **more)
    (finding,) = run_probes(LineageProbes(settings).list_probes())
    return finding


def test_pipeline_without_lineage_has_no_probe():
    assert LineageProbes(None).list_probes() == []


def test_log():
    assert probed("log") == Finding("lineage", "ok", "OpenLineage events go to the log.")


@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_server_that_answers(status):
    with Target(status) as target:
        said = f"the server '{target.url}' answers; whether it takes events, a load shows."
        assert probed(target.url) == Finding("lineage", "ok", said)
    # An event would stay there.
    assert [method for method, _, _ in target.requests] == ["GET"]


def test_server_that_does_not_answer():
    with closed_port() as url:
        found = probed(url)
    assert (found.status, found.message) == (
        "warning", f"the server '{url}' of lineage.to cannot be reached: events are lost until it does.",
    )  # fmt: skip
    with Target(hangs=True) as target:
        found = probed(target.url)
    assert (found.status, found.message) == (
        "warning", f"the server '{target.url}' of lineage.to did not answer: events are lost until it does.",
    )  # fmt: skip


def test_key_that_cannot_be_resolved(monkeypatch):
    monkeypatch.delenv("LINEAGE_KEY", raising=False)
    found = probed("https://localhost:1", api_key=SecretText("${env:LINEAGE_KEY}"))
    assert (found.status, found.code) == ("warning", "SECRET_UNRESOLVED")
    assert found.message.startswith("lineage.api_key: ${env:LINEAGE_KEY} cannot be resolved")


def test_file(tmp_path):
    file = tmp_path / "events.jsonl"
    assert probed(str(file)).message == f"OpenLineage events are appended to '{file}'."
    assert not file.exists()
    for wrong in (tmp_path, tmp_path / "gone" / "events.jsonl"):
        found = probed(str(wrong))
        assert (found.status, found.message) == (
            "warning", f"the file '{wrong}' of lineage.to cannot be written: no event is kept.",
        )  # fmt: skip


def test_client_that_is_not_installed(monkeypatch):
    monkeypatch.setattr("lakewriter.doctor.doctor.is_installed", lambda: False)
    assert probed("log") == Finding(
        "lineage", "warning", "the package openlineage-python is not installed: no event is sent.",
        "Install it with pip install '.[lineage]' in a clone, or 'FILE.whl[lineage]' of a wheel, or "
        "leave lineage out.",
    )  # fmt: skip
