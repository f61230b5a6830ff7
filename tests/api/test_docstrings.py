"""The functions of the package document each of their parameters, what they return and what they raise."""

import inspect
import re

import pytest

import lakewriter

FUNCTIONS = sorted(set(lakewriter.__all__) - {"LakeError"})
NOTHING_TO_RETURN = {"register"}
"""It returns nothing, and raises what Spark raises."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_parameter_is_documented_in_order(name):
    function = getattr(lakewriter, name)
    text = inspect.getdoc(function) or ""
    part = re.search(r"^Args:\n((?:    .*\n?|\n)*)", text, re.MULTILINE)
    assert part is not None
    assert re.findall(r"^    (\w+): \S", part[1], re.MULTILINE) == list(inspect.signature(function).parameters)
    if name not in NOTHING_TO_RETURN:
        assert re.search(r"^(Returns|Yields):\n    \S", text, re.MULTILINE)
        assert re.search(r"^Raises:\n    LakeError: \S", text, re.MULTILINE)
