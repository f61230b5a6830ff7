"""Damaged files: each is read, or refused by an error of ours in words of ours, within bounds of time and memory."""

import re
import resource
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import LakeError
from tests.dialects.mutated_files import mutated, write_files

FOUND = (1434, 4370, 5189, 7116, 8203, 9239, 9738)
"""Seeds whose files once ended otherwise."""
SOME, ALL = 300, 10_000
SECONDS = 10.0
"""Of processor time for one file, on a machine that does other things too."""
GROWTH_MIB = 400
LONGEST = 30_000
"""Characters of a report."""

RAW = re.compile(
    r"NoneType|[Ii]nput should|should have|validat|[Tt]raceback|\bdict\b|\btuple\b|\bNone\b|\bstr\b|object at 0x"
    r"|input tag|Errno|: : |datetime\."
)
"""What no person says."""
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def end_of(path: Path, stage: str | None = None) -> tuple[str, str]:
    """An error's code and its report; ``read`` where there is none."""
    try:
        load(path, stage=stage)
    except LakeError as error:
        return error.code, error.report
    return "read", ""


def _load_all(folder: Path, seeds: Iterable[int]) -> dict[str, int]:
    """How often each code came."""
    ends: dict[str, int] = {}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        path = write_files(folder, mutated(seed))
        start = time.process_time()
        code, report = end_of(path, "dev" if seed % 7 == 0 else None)
        assert time.process_time() - start < SECONDS, f"seed {seed}"
        assert not RAW.search(QUOTED.sub("Q", report)), f"seed {seed}: {report}"
        assert len(report) < LONGEST, f"seed {seed}"
        ends[code] = ends.get(code, 0) + 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GROWTH_MIB * 1024
    return ends


def test_some_damaged_files_and_all_that_were_found(tmp_path):
    ends = _load_all(tmp_path, [*FOUND, *range(SOME)])
    assert ends["read"] > SOME // 30
    assert ends["SPEC_INVALID"] > SOME // 3


@pytest.mark.exhaustive
def test_many_damaged_files(tmp_path):
    assert sum(_load_all(tmp_path, range(ALL)).values()) == ALL
