"""Which objects of a table's folder are a pipeline's own."""

from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.commit.store import StoredObject
from lakewriter.commit.table_objects import find_own_objects
from lakewriter.errors import LakeError, NoAnswerError, S3AccessDeniedError
from lakewriter.naming import ControlKeys
from tests.simulation.lakes import BUCKET, make_lake

DENIED, SILENT = S3AccessDeniedError("denied", remedy="r"), NoAnswerError("no answer", remedy="r")
OWN = StoredObject(etag="e", size=1, load="p/a/1", table="s.t")
ANSWERS = [
    # what HEAD says of two objects; the keys that are the table's own, None where nobody knows
    ((OWN, OWN), ["one", "two"]),
    ((None, OWN), ["two"]),
    ((DENIED, OWN), ["two"]),
    ((SILENT, OWN), None),
    ((OWN, SILENT), None),
]


class Store:
    """Two objects, of which HEAD says what it is told to."""

    def __init__(self, prefix: str, answers: tuple[Any, Any]) -> None:
        self._answers = dict(zip((f"{prefix}{name}.parquet" for name in ("one", "two")), answers, strict=True))

    def list_entries(self, _: str) -> list[Any]:
        return [SimpleNamespace(key=key, modified=0) for key in self._answers]

    def head(self, key: str) -> StoredObject | None:
        answer: StoredObject | LakeError | None = self._answers[key]
        if isinstance(answer, LakeError):
            raise answer
        return answer


@pytest.mark.parametrize(("answers", "own"), ANSWERS)
def test_an_object_of_which_nothing_is_said_is_not_left_out(answers, own):
    destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1"}
    read = {"format": "csv", "path": "s3://source/", "columns": "id BIGINT"}
    layout = make_lake("files", "p", destination, [{"table": "t", "schema": "s", "read": read}]).spec.tables[0].layout
    store: Any = Store(layout.prefix, answers)
    matcher = layout.matcher()
    assert all(matcher.fullmatch(entry.key) for entry in store.list_entries(""))
    found = find_own_objects(store, ControlKeys("", "p"), "s.t", layout)
    if own is None:
        with pytest.raises(NoAnswerError):
            list(found)
        return
    assert [key.removeprefix(layout.prefix).removesuffix(".parquet") for key, _ in found] == own
