"""Give the reason for each wildcard in a statement, which cdk-nag reports."""

from typing import Final

from lakewriter.dialects.registry import VENDOR_STATEMENTS

REASONS: Final = {
    "WriteObjects": "Object keys are made at run time; nothing outside the pipeline's prefix matches.",
    "ReadObjects": "Object keys are made at run time; nothing outside the pipeline's prefix matches.",
    "WriteCheckpoints": "Spark names what it keeps of each query; nothing outside the pipeline's checkpoints matches.",
    "ReadSource": "A source is a folder, and the files in it come and go; no other folder matches.",
    "WriteTables": "Tables are this pipeline's by their names; names that merely begin alike do not match.",
    "ReadTables": "Tables are read as they appear; databases whose names merely begin alike do not match.",
    "ResetTables": "deployment.allow_reset is on in lake.yaml: the vendor may drop the tables of its own databases.",
    "AskLakeFormation": "lakeformation:GetDataAccess has no resources; grants in Lake Formation say on what.",
    **dict.fromkeys(VENDOR_STATEMENTS, "deployment.vendor_verbatim is on: the vendor checks for its own document."),
}
"""By statement id, without the number at its end."""


def find_reason(sid: str) -> str:
    """Find the reason why the statement ``sid`` has a wildcard."""
    return REASONS[sid.rstrip("0123456789")]
