"""Read what is taken for granted about AWS: the rows of aws_claims.csv, each with its page and how sure it is."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("aws_claims.csv")
FIELDS: Final = "Fields of emr-serverless:startJobRun.sync"
KINDS: Final = {"example", "documented", "inferred", "observed", "unproven"}
"""Claims about the templates by how sure they are, which is the first word.

Documented: the page says it in so many words. Inferred: it follows from the page. Observed: AWS has not written it
down, or it was read in a type's schema. Example: public definitions have it. Unproven: nothing speaks against it.
"""


@dataclass(frozen=True)
class Claim:
    """One row of the file."""

    section: str
    claim: str
    page: str
    how_sure: str
    if_wrong: str
    what_to_do: str

    @property
    def names(self) -> list[str]:
        """What the claim has in backquotes: a principal, a condition key, an integration, a field."""
        return re.findall(r"`([^`]+)`", self.claim)

    @property
    def kind(self) -> str:
        return re.split(r"[,; ]", self.how_sure)[0]

    @property
    def is_unproven(self) -> bool:
        return re.search(r"\bunproven\b", self.how_sure) is not None


def read_claims(section: str | None = None) -> list[Claim]:
    """Read the claims of a section, or all."""
    with FILE.open(encoding="utf-8", newline="") as file:
        rows = [Claim(**row) for row in csv.DictReader(file)]
    return [row for row in rows if section in {None, row.section}]


def read_by_name(section: str) -> dict[str, Claim]:
    """Read the claims of a section, each by every name that it has in backquotes."""
    return {name: row for row in read_claims(section) for name in row.names}
