"""Price requests to S3 and its storage by AWS's price list, with the day that the prices are of."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

_FILE: Final[Mapping[str, Any]] = json.loads(files("lakewriter.pages").joinpath("prices.json").read_text("utf-8"))
"""``scripts/prices`` reads it anew from AWS's price list."""

SOURCE: Final[str] = _FILE["source"]
AS_OF: Final[str] = _FILE["read"]
REGION: Final[str] = _FILE["region"]

WRITE: Final[float] = _FILE["thousand_writes"] / 1000
"""US dollars for a PUT, COPY, POST or LIST request, S3 Standard."""
READ: Final[float] = _FILE["thousand_reads"] / 1000
"""US dollars for a GET or any other request, S3 Standard; a DELETE is free."""
MONTH: Final[float] = _FILE["gigabyte_month"] / 1024**3
"""US dollars for a byte in S3 Standard for a month, of the first 50 TB; AWS counts 2^30 bytes as a gigabyte.
https://aws.amazon.com/s3/faqs/"""

_WRITES: Final = ("PUT", "POST", "COPY")
_FREE: Final = ("DELETE",)


def price_requests(requests: Mapping[str, int]) -> tuple[float, float]:
    """Return the least and the most that the requests cost: a listing is a GET to HTTP, and costs what a PUT costs."""
    least = sum(count * (WRITE if method in _WRITES else READ) for method, count in _list_priced(requests))
    return least, least + requests.get("GET", 0) * (WRITE - READ)


def price_month(size: int) -> float:
    """Return the cost of so many bytes in a month."""
    return size * MONTH


def format_dollars(amount: float) -> str:
    """Return an amount with as many digits as a small one needs."""
    if amount >= 0.01 or not amount:
        return f"${amount:,.2f}"
    return f"${amount:.6f}".rstrip("0") if amount >= 0.000001 else "less than $0.000001"


def _list_priced(requests: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(method, count) for method, count in requests.items() if method not in _FREE]
