"""What else an assembly says of its stacks: warnings, and the findings that were acknowledged."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

REPORT: Final = "validation-report.json"
WARNING: Final = "aws:cdk:warning"
PACK: Final = "AwsSolutions-"


def warnings(folder: Path, stacks: Sequence[str]) -> tuple[str, ...]:
    """What the constructs of ``stacks`` warn of, each once."""
    artifacts = json.loads((folder / "manifest.json").read_text("utf-8"))["artifacts"]
    texts = (text for stack in stacks for text in _warned(folder, artifacts[stack]))
    return tuple(dict.fromkeys(texts))


def _warned(folder: Path, artifact: Mapping[str, Any]) -> Iterator[str]:
    file = artifact.get("additionalMetadataFile")
    entries = json.loads((folder / file).read_text("utf-8")) if file else artifact.get("metadata", {})
    for found in entries.values():
        # CDK ends a warning with how to acknowledge it.
        yield from (str(each["data"]).partition(" [ack:")[0] for each in found if each["type"] == WARNING)


def acknowledgments(folder: Path, stacks: Sequence[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Constructs by finding and reason; none where validation was switched off."""
    path = folder / REPORT
    if not path.exists():
        return {}
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for report in json.loads(path.read_text("utf-8"))["pluginReports"]:
        for finding in report.get("suppressedViolations", ()):
            key = finding["ruleName"].removeprefix(PACK), finding.get("reason", "")
            places = tuple(each["constructPath"].removesuffix("/Resource") for each in finding["violatingConstructs"])
            found[key] = found.get(key, ()) + tuple(place for place in places if place.split("/")[0] in stacks)
    return {key: places for key, places in found.items() if places}
