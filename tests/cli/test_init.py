"""``lakewriter init`` as a person and a program call it: it asks on a terminal only, and overwrites nothing."""

import json
import os
import pty
import subprocess
import sys
from contextlib import chdir

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main

ORDERS = "order_id,updated_at\n1,2026-01-01T10:00:00Z\n2,2026-01-02T10:00:00Z\n"
COMMAND = [sys.executable, "-m", "lakewriter", "init"]

SAID = """\
table   format  primary key  cursor      types  each load
orders  csv     order_id     updated_at  2      rows above the cursor
Wrote lake.yaml. Read it: each line says why it is there, and ? stands for what only you can tell.
Next, without an account, on an S3 server of this machine:
  lakewriter check lake.yaml --local
  lakewriter plan lake.yaml --local
  lakewriter run lake.yaml --local
In your own account: the same without --local once your bucket replaces 'change-me'.
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "orders.csv").write_text(ORDERS, "utf-8")
    return tmp_path


def run(folder, *arguments):
    with chdir(folder):
        return CliRunner().invoke(main, ["init", *arguments])


def test_a_program_is_asked_nothing(folder):
    done = subprocess.run([*COMMAND, "orders.csv"], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()] == SAID.splitlines()
    schema = json.loads((folder / "lake.schema.json").read_text("utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_nothing_is_overwritten(folder):
    (folder / "lake.yaml").write_text("mine", "utf-8")
    done = run(folder, "orders.csv")
    assert (done.exit_code, done.stderr) == (
        2,
        "SPEC_INVALID: lake.yaml exists, and is not overwritten. Name another file with --output, or move it away.\n",
    )
    assert (folder / "lake.yaml").read_text("utf-8") == "mine"
    (folder / "lake.schema.json").write_text("mine", "utf-8")
    assert run(folder, "orders.csv", "-o", "other.yaml").exit_code == 0
    assert (folder / "lake.schema.json").read_text("utf-8") == "mine"


def test_a_dash_prints_and_writes_nothing(folder):
    done = run(folder, "orders.csv", "--bucket", "acme-lake", "--output", "-")
    assert "  location: s3://acme-lake/lake" in done.stdout
    assert os.listdir(folder) == ["orders.csv"]  # noqa: PTH208


def test_without_a_place_a_program_is_told_what_to_give(folder):
    done = run(folder)
    assert (done.exit_code, done.stderr) == (
        2,
        "SPEC_INVALID: expected a PATH or a jdbc: URL to begin with. Name what there is, such as: lakewriter init "
        "data/ or lakewriter init jdbc:postgresql://host/shop.\n",
    )


def test_a_person_is_asked_for_what_is_missing(folder):
    controller, terminal = pty.openpty()
    with subprocess.Popen(COMMAND, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        os.write(controller, b"orders.csv\nacme-lake\n")
        output = b""
        # Linux ends a terminal that nobody has open any more with an error.
        try:
            while data := os.read(controller, 4096):
                output += data
        except OSError:
            pass
        assert process.wait() == 0
    os.close(controller)
    assert b"Files, a folder, a vendor's configuration, or jdbc: URL: " in output
    assert b"Bucket (blank: later): " in output
    assert "location: s3://acme-lake/lake" in (folder / "lake.yaml").read_text("utf-8")


def test_what_is_missing_is_said_and_the_file_is_there(folder):
    config = {"s3_bucket_name": "acme", "s3_bucket_path": "raw", "s3_bucket_region": "eu-west-1",
              "format": {"format_type": "JSONL"}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    done = run(folder, "config.json")
    assert done.exit_code == 0
    assert "Mend this first:\n" in done.stdout
    assert done.stderr.splitlines()[1].startswith("  SPEC_INVALID: lake.yaml:17: source.catalog: there is no file "), (
        done.stderr
    )
