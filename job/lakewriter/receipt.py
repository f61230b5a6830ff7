"""What a staged file left behind: all that is needed to complete it, to withdraw it, or to check it later."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

RECEIPT_VERSION: Final = 1


@dataclass(frozen=True)
class Part:
    """One uploaded part; ``checksum`` is base64, or None where the store keeps none."""

    number: int
    etag: str
    checksum: str | None = None


@dataclass(frozen=True)
class ColumnStatistics:
    """One leaf column of a file. Bounds are Python values rendered as text, or None where the writer kept none."""

    values: int
    nulls: int | None
    compressed_bytes: int
    lower: str | None = None
    upper: str | None = None


@dataclass(frozen=True)
class Cursor:
    """The highest value of the cursor column: its Arrow type and exact text (timestamps: UTC microseconds)."""

    type: str
    text: str


@dataclass(frozen=True)
class Batch:
    """One micro-batch of a continuous run: its query's id, which the checkpoint keeps, and its number from 0.

    ``offsets`` is a digest of what the checkpoint planned for it: the same number planned again is another batch.
    """

    query: str
    number: int
    offsets: str | None = None

    @property
    def job_id(self) -> str:
        """The load's name: the same batch is the same load, whenever it is run."""
        return f"{batch_prefix(self.query)}{self.number:010d}"


def batch_prefix(query: str) -> str:
    """What the job ids of a query's batches begin with; they sort by number."""
    return f"stream-{query}-"


@dataclass(frozen=True)
class Receipt:
    """A multipart upload that has all its parts and is not completed.

    ``size`` is bytes, ``partition`` the Spark partition that wrote it, ``first_index`` the tracking index of its
    first row, ``cursor_nulls`` the rows whose cursor was null, ``requests`` counts HTTP requests by method. ``changes``
    counts values that are not as the source gave them, ``undeclared`` properties without a column, by path.
    ``partition_values`` is the Iceberg partition that all rows are in, in Iceberg's JSON.
    """

    bucket: str
    key: str
    upload_id: str
    parts: tuple[Part, ...]
    checksum_algorithm: str | None
    size: int
    rows: int
    partition: int
    seq: int
    first_index: int
    engine: str
    row_groups: int
    requests: Mapping[str, int]
    cursor: Cursor | None = None
    cursor_nulls: int = 0
    changes: int = 0
    change_samples: tuple[str, ...] = ()
    undeclared: Mapping[str, int] = field(default_factory=dict)
    task_attempt: int = 0
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    partition_values: tuple[str | int | bool | None, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """A JSON object that ``from_json`` takes back."""
        return {"version": RECEIPT_VERSION, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Receipt":
        """The receipt in ``data``; ``ValueError`` when it contradicts itself or is of an unknown version."""
        fields = dict(data)
        version = fields.pop("version", None)
        if version != RECEIPT_VERSION:
            raise ValueError(f"receipt version {version!r}, expected {RECEIPT_VERSION}")
        fields["parts"] = tuple(Part(**part) for part in fields["parts"])
        fields["change_samples"] = tuple(fields.get("change_samples", ()))
        fields["cursor"] = Cursor(**fields["cursor"]) if fields["cursor"] else None
        fields["columns"] = {name: ColumnStatistics(**value) for name, value in fields["columns"].items()}
        fields["partition_values"] = tuple(fields.get("partition_values", ()))
        receipt = cls(**fields)
        numbers = [part.number for part in receipt.parts]
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"parts of {receipt.key!r} are numbered {numbers}, expected 1 to N without gaps")
        return receipt


@dataclass
class Findings:
    """Changes made to values, a sample of them, and undeclared properties by path."""

    changes: int = 0
    samples: list[str] = field(default_factory=list)
    undeclared: Counter[str] = field(default_factory=Counter)
