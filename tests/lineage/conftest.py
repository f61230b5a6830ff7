"""Fixtures of loads whose events go to a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.load.lakes import Lake
from tests.load.syncs import SyncLake

Events = list[dict[str, Any]]
Follow = Callable[..., Events]


@pytest.fixture
def follow(tmp_path: Path) -> Follow:
    """Adds ``lineage`` to a pipeline's file, runs ``load``, and returns the events that are new."""

    def follow(lake: Lake | SyncLake, load: Callable[[], object], **lineage: Any) -> Events:
        content = yaml.safe_load(lake.file.read_text("utf-8"))
        content["lineage"] = {"to": "events.jsonl", "namespace": "shop-dev"} | lineage
        lake.file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")
        before = len(read_events(tmp_path))
        load()
        return read_events(tmp_path)[before:]

    return follow


def read_events(folder: Path) -> Events:
    """The events of the file, in their order."""
    file = folder / "events.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
