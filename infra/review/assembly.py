"""Read warnings and acknowledged findings from a cloud assembly."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from infra.review.templates import find_stacks

REPORT: Final = "validation-report.json"
WARNING: Final = "aws:cdk:warning"
PACK: Final = "AwsSolutions-"


def list_warnings(folder: Path, stacks: Sequence[str]) -> tuple[str, ...]:
    """List the warnings of the constructs of ``stacks``, each once."""
    artifacts = find_stacks(folder)
    texts = (text for stack in stacks for text in _read_warnings(*artifacts[stack]))
    return tuple(dict.fromkeys(texts))


def _read_warnings(folder: Path, artifact: Mapping[str, Any]) -> Iterator[str]:
    file = artifact.get("additionalMetadataFile")
    entries = json.loads((folder / file).read_text("utf-8")) if file else artifact.get("metadata", {})
    for messages in entries.values():
        # CDK appends the id for acknowledging it to each warning.
        yield from (str(message["data"]).partition(" [ack:")[0] for message in messages if message["type"] == WARNING)


def list_acknowledgments(folder: Path, stacks: Sequence[str]) -> dict[tuple[str, str], tuple[str, ...]]:
    """List the constructs of each acknowledged finding and reason; empty if validation was switched off.

    The report lies beside the app's own manifest, above the folder of a ``cdk.Stage``.
    """
    path = next((above / REPORT for above in (folder, *folder.parents) if (above / REPORT).exists()), None)
    if path is None:
        return {}
    artifacts = find_stacks(folder)
    roots = tuple(f"{artifacts[stack][1].get('displayName', stack)}/" for stack in stacks)
    constructs: dict[tuple[str, str], tuple[str, ...]] = {}
    for report in json.loads(path.read_text("utf-8"))["pluginReports"]:
        for finding in report.get("suppressedViolations", ()):
            key = finding["ruleName"].removeprefix(PACK), finding.get("reason", "")
            paths = tuple(
                construct["constructPath"].removesuffix("/Resource") for construct in finding["violatingConstructs"]
            )
            constructs[key] = constructs.get(key, ()) + tuple(path for path in paths if path.startswith(roots))
    return {key: paths for key, paths in constructs.items() if paths}
