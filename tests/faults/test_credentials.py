"""Credentials of an assumed role that expire while a load runs, and where none of them may be found."""

import re
import time
from pathlib import Path
from typing import Self

import pytest

from tests.faults.books import ORDERS, Books
from tests.faults.process import Process
from tests.load.lakes import BUCKET, completes, uploads_part
from tests.support import java
from tests.support.call import Answer, Call
from tests.support.server import StrictAws

pytestmark = pytest.mark.spark

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"
BASE = "BASEKEYOFTHEJOBITSELFWHICHISKEPTINAFILE0"
EXTERNAL_ID = "external-id-that-is-kept-in-secrets-manager"
SESSION_SECONDS = 8

_HANDED_OUT = re.compile(rb"<(?:SecretAccessKey|SessionToken)>([^<]+)<")


class Watch:
    """What STS hands out, and everywhere that a process and those it started leave traces."""

    def __init__(self, aws: StrictAws) -> None:
        self.secrets = {BASE.encode(), EXTERNAL_ID.encode()}
        self.signed_with: list[str] = []
        self.refused: list[Call] = []
        self.traces: dict[str, bytes] = {}
        self._observers = aws.observers

    def __enter__(self) -> Self:
        self._observers.append(self.observe)
        return self

    def __exit__(self, *_: object) -> None:
        self._observers.remove(self.observe)

    def observe(self, call: Call, answer: Answer) -> None:
        if call.action == "sts:AssumeRole":
            self.secrets |= set(_HANDED_OUT.findall(answer.body))
        elif call.access_key not in self.signed_with:
            self.signed_with.append(call.access_key)
        if b"ExpiredToken" in answer.body:
            self.refused.append(call)

    def look(self, process: Process) -> None:
        """At each process's environment and command line, and at every file."""
        for pid in process.members():
            for name in ("environ", "cmdline"):
                self.traces[f"{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
        for file in process.folder.parents[1].rglob("*"):
            if file.is_file():
                self.traces[f"{file} at {time.monotonic()}"] = file.read_bytes()

    def found(self, *texts: bytes) -> set[str]:
        """Where one of the texts is."""
        return {where for where, trace in self.traces.items() if any(text in trace for text in texts)}


@pytest.fixture
def credentials(tmp_path_factory) -> str:
    """The job's own, in a file that is nobody else's."""
    file = tmp_path_factory.mktemp("home") / "credentials"
    file.write_text(f"[default]\naws_access_key_id = AKIAJOB\naws_secret_access_key = {BASE}\n", "utf-8")
    return str(file)


@pytest.mark.exhaustive
def test_credentials_expire_during_a_load(lake, credentials, monkeypatch):
    aws = lake.aws
    aws.role(ROLE, external_id=EXTERNAL_ID)
    secret = aws.client("secretsmanager").create_secret(Name="external-id", SecretString=EXTERNAL_ID)["ARN"]
    books = Books(lake, ORDERS, iam_role_arn=ROLE, external_id=f"${{secret:{secret}}}")
    aws.session_seconds(SESSION_SECONDS)
    files = lake.folder / "tmp"
    files.mkdir()
    own = {"AWS_SHARED_CREDENTIALS_FILE": credentials, "TMPDIR": str(files), "SPARK_LOCAL_DIRS": str(files)}
    own["JDK_JAVA_OPTIONS"] = f"{java.options()} -Djava.io.tmpdir={files}"
    with monkeypatch.context() as environment, Watch(aws) as watch:
        environment.delenv("AWS_ACCESS_KEY_ID")
        environment.delenv("AWS_SECRET_ACCESS_KEY")
        with Process(lake.file, "a", aws.url, **own) as process:

            def outlive() -> None:
                watch.look(process)
                time.sleep(SESSION_SECONDS + 1)

            process.gate.at(uploads_part, outlive, applied=True)
            process.gate.at(completes, lambda: watch.look(process))
            assert process.wait() == 0, process.errors
        watch.look(process)
    watch.traces |= aws.objects(BUCKET)
    assert watch.found(*watch.secrets) == set()
    assert len(watch.found(ROLE.encode())) > 2, "what is looked for is found where it is"
    assert len(watch.secrets) >= 2 + 2 * 2
    assert len(watch.signed_with) >= 2
    assert watch.refused == []
    aws.session_seconds(3600)
    books.audit(again=["a"])
