"""Tables whose folders lie in one another, whichever dialect names them."""

import pytest

from lakewriter.dialects.common.tables import find_nested

CASES = [
    # paths, the numbers of those in another, and which
    (["a/b", "a/c"], []),
    (["a/b", "a/bc"], []),
    (["a/b", "a/b"], [(0, "a/b"), (1, "a/b")]),
    (["a/b/c", "a/b"], [(0, "a/b")]),
    (["a/b/c", "a/b", "a"], [(0, "a/b"), (1, "a")]),
]


@pytest.mark.parametrize(("paths", "nested"), CASES)
def test_nested_paths(paths: list[str], nested: list[tuple[int, str]]) -> None:
    assert list(find_nested(paths)) == nested
