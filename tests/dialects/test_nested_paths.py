"""Tables whose folders lie in one another, whichever dialect names them."""

import pytest

from lakewriter.dialects.common.tables import find_nested

CASES = [
    # paths, the numbers of those in another or like an earlier one, and of which
    (["a/b", "a/c"], []),
    (["a/b", "a/bc"], []),
    (["a/b", "a/b"], [(1, 0)]),
    (["a/b/c", "a/b"], [(0, 1)]),
    (["a/b/c", "a/b", "a"], [(0, 1), (1, 2)]),
]


@pytest.mark.parametrize(("paths", "nested"), CASES)
def test_nested_paths(paths: list[str], nested: list[tuple[int, int]]) -> None:
    assert list(find_nested(paths)) == nested
