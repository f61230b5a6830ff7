"""What a task finds in the rows of a file, beyond the rows."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Findings:
    """Changes made to values, a sample of them, and undeclared properties by path."""

    changes: int = 0
    samples: list[str] = field(default_factory=list)
    undeclared: Counter[str] = field(default_factory=Counter)
