"""``scripts/setup`` where a registry cannot be had: it gives the reason, leaves nothing running, and goes on later."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.package.environments import ROOT

HASH = f"sha256:{0:064d}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose only requirement is on no registry."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup", tmp_path / "scripts" / "setup")
    (tmp_path / "requirements.txt").touch()
    (tmp_path / "package-lock.json").write_text("{}")
    (tmp_path / "requirements-use.txt").write_text(f"lakewriter-absent-too==1.0 --hash={HASH}\n")
    (tmp_path / "requirements-dev.txt").write_text(f"lakewriter-absent==1.0 --hash={HASH}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.11").symlink_to(Path(sys.executable).resolve())
    return tmp_path


def begin(project: Path, *arguments: str, **env: str) -> "subprocess.Popen[str]":
    """Call the project's ``scripts/setup``; ``env`` are settings of pip."""
    names = ("PATH", "HOME", "LANG", "TMPDIR")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    path = f"{project / 'bin'}:{kept.pop('PATH')}"
    return subprocess.Popen(
        [str(project / "scripts" / "setup"), *arguments],
        env=kept | {"PATH": path, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0"} | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.exhaustive
def test_a_failure_has_its_reason_and_what_helps(project: Path) -> None:
    process = begin(project, PIP_NO_INDEX="1")
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    assert "setup: Python packages failed after" in err
    # pip's own words.
    assert "No matching distribution found for lakewriter-absent==1.0" in err
    assert "PIP_CERT=/path/to/ca.pem" in err
    assert "PIP_INDEX_URL=" in err


@pytest.mark.exhaustive
def test_a_set_up_for_use_takes_its_own_packages(project: Path) -> None:
    """A whole set-up goes on with the environment that is there for use."""
    _, use = begin(project, "use", PIP_NO_INDEX="1").communicate(timeout=120)
    assert "No matching distribution found for lakewriter-absent-too==1.0" in use
    _, whole = begin(project, PIP_NO_INDEX="1").communicate(timeout=120)
    assert "Python environment" not in whole
    assert "No matching distribution found for lakewriter-absent==1.0" in whole


def test_another_word_is_refused(project: Path) -> None:
    process = begin(project, "all")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (2, "", "usage: scripts/setup [use]\n")


@pytest.mark.exhaustive
def test_a_second_call_goes_on(project: Path) -> None:
    _, first = begin(project, PIP_NO_INDEX="1").communicate(timeout=120)
    _, second = begin(project, PIP_NO_INDEX="1").communicate(timeout=120)
    assert "setup: Python environment in .venv ..." in first
    assert "Python environment" not in second
    (project / "requirements.txt").write_text("# other packages\n")
    _, third = begin(project, PIP_NO_INDEX="1").communicate(timeout=120)
    assert "setup: Python environment in .venv ..." in third


@pytest.mark.exhaustive
def test_a_signal_leaves_nothing_running(project: Path) -> None:
    """A registry that accepts and never answers; pip runs in a process group of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        process = begin(project, PIP_INDEX_URL=f"http://127.0.0.1:{server.getsockname()[1]}/", PIP_TIMEOUT="120")
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
            assert process.returncode == 143
            # The end of pip closes its connection.
            connection.settimeout(30)
            deadline = time.monotonic() + 30
            while connection.recv(4096):
                assert time.monotonic() < deadline
