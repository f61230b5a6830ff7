"""The kinds of pipelines that are simulated. Nothing of the product is imported: a rule is taken out of it first."""

from typing import Final

WEIGHTS: Final = {
    "files": 5, "glue": 4, "iceberg": 1, "airbyte": 4, "messages": 3, "estuary": 3, "batches": 2, "refresh": 3,
    "quarantine": 5, "connector": 4, "merged": 2, "deduped": 2, "history": 2,
}  # fmt: skip
"""How often each is played: histories of Iceberg's tables take three times as long as others."""
KINDS: Final = tuple(WEIGHTS)
