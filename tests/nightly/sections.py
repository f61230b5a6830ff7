"""The sections of ``scripts/nightly``: what takes too long for ``scripts/test``, the quick ones first."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PYTEST = (sys.executable, "-m", "pytest")
RANDOM_KILLS = "test_random_kills.py"
NAMED = ("test_clean_install.py", "test_fresh_clone.py", "test_s3_servers.py", "test_exactly_once.py")
"""Files with sections of their own."""
HISTORIES = 100_000
"""Of the simulation."""
COVERAGE = ("--numprocesses", "auto", "--maxprocesses", "4", "--no-loadscope-reorder", "--cov")
PART = 10_000
"""Histories that pass together; when one fails or the run is killed, its part is played again."""


@dataclass(frozen=True)
class Section:
    """A command and the variables it gets; it has passed when it exits with 0.

    A command that writes a JSON object of figures to the file that ``LAKEWRITER_NIGHTLY_FIGURES`` names has them in the
    table; any other has the last line that it prints with ``figures`` in it. ``variant`` tells apart what passes by
    itself under one name, such as the runs of two seeds.
    """

    name: str
    shows: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    figures: str = ""

    @property
    def key(self) -> str:
        """The name of its notes and of its line in the table."""
        return f"{self.name}-{self.variant}" if self.variant else self.name


def list_sections(*, kills: int, seed: int) -> list[Section]:
    """Every section, in the order they run in."""
    return [
        _tests(
            "clean-install", "the wheel, with pinned packages from the index", "tests/package/test_clean_install.py"
        ),
        _tests("fresh-clone", "demo, bundle and synth without Java and Node", "tests/package/test_fresh_clone.py"),
        # It makes the tests take twice the time.
        Section("coverage", "the tests of CI, and a floor under the coverage", (*PYTEST, *COVERAGE), figures="TOTAL"),
        *(_file(file) for file in sorted(TESTS.rglob("test_*.py")) if _is_sampled(file)),
        _tests(
            "inferred-documents",
            "10,000 sets of documents without a schema, in any order and any batches",
            "tests/shape/test_inferred_documents.py",
            LAKEWRITER_DOCUMENTS="10000",
        ),
        _tests(
            "csv-files",
            "100,000 random CSV files, read by Python's csv as well",
            "tests/source/files/test_csv_differential.py",
            LAKEWRITER_CSV_FILES="100000",
        ),
        _tests(
            "json",
            "100,000 random files of JSON, each row as Python's json has it",
            "tests/source/files/test_json_differential.py",
            LAKEWRITER_JSON_FILES="100000",
        ),
        _tests(
            "servers",
            "the protocol on SeaweedFS and versitygw",
            "tests/interop/test_s3_servers.py",
            LAKEWRITER_INTEROP="all",
        ),
        _tests(
            "servers-exactly-once",
            "overlapping, dying and forgetful loads on them",
            "tests/interop/test_exactly_once.py",
            LAKEWRITER_INTEROP="all",
        ),
        _tests(
            "pyairbyte",
            "a real source, with PyAirbyte as the client",
            "tests/interop/test_pyairbyte.py",
            LAKEWRITER_INTEROP="all",
        ),
        _tests(
            "deploying-tools",
            "the stacks by Terraform with AWS's provider, and by AWS's command line",
            "tests/interop/test_deploying_tools.py",
            LAKEWRITER_INTEROP="all",
        ),
        *(_file(file) for file in sorted((TESTS / "faults").glob("test_*.py")) if file.name != RANDOM_KILLS),
        _tests(
            "random-kills",
            f"{kills} kills at random moments, seed {seed}",
            f"tests/faults/{RANDOM_KILLS}",
            variant=f"seed-{seed}-kills-{kills}",
            LAKEWRITER_FAULTS_SEED=str(seed),
            LAKEWRITER_FAULTS_KILLS=str(kills),
        ),
        Section(
            "proof",
            "a deployment from beginning to end, on the emulator, call by call as it is recorded",
            ("scripts/prove", "--compare", "tests/proof/transcript.json"),
            figures="calls, in",
        ),
        # What is no pytest file goes here: a Section with its name, what it shows, and its command.
        *(_simulation(first) for first in range(1, HISTORIES, PART)),
    ]


def _is_sampled(file: Path) -> bool:
    """Whether CI plays a sample of its tests only, and no other section has them."""
    if file.parent.name in ("faults", "nightly") or file.name in NAMED:
        return False
    marks = r"mark\.(exhaustive|one_in)|(sampled|in_turn|fifth_of|values_alone)\("
    return re.search(marks, file.read_text("utf-8")) is not None


def _file(file: Path) -> Section:
    name = file.stem.removeprefix("test_").replace("_", "-")
    folder = file.parent.name
    name = name if folder == "faults" else f"{folder}-{name}"
    return _tests(name, _first_line(file), str(file.relative_to(ROOT)), LAKEWRITER_INTEROP="all")


def _tests(name: str, shows: str, file: str, variant: str = "", **environment: str) -> Section:
    """All tests of a file, those that are marked ``exhaustive`` included; each that passed is noted by itself."""
    pytest = (*PYTEST, "-p", "tests.nightly.notes", "--timeout", "3600", file)
    return Section(name, shows, pytest, environment | {"LAKEWRITER_FAULTS": "all"}, variant)


def _simulation(first: int) -> Section:
    """A part of the histories; each seed is one of them."""
    how = ("--histories", str(PART), "--processes", str(os.cpu_count()), "--guards", "judge")
    command = ("scripts/simulate", "--seed", str(first), *how)
    shows = f"{PART:,} random histories from seed {first}, and how often each guard acts"
    return Section("simulation", shows, command, variant=f"seed-{first}", figures="histories from seed")


def _first_line(file: Path) -> str:
    return file.read_text("utf-8").partition("\n")[0].strip('".')
