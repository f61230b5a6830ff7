"""What tests take in the place of parts of botocore and of Python does the same."""

import http.client
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore import compat, hooks

# Taken before a session of tests replaces it.
PARSE = http.client.parse_headers


def both(data: bytes) -> list[tuple[list[tuple[str, str]], Any, list[type]]]:
    messages = [parse(BytesIO(data)) for parse in (PARSE, http.client.parse_headers)]
    return [(one.items(), one.get_payload(), [type(defect) for defect in one.defects]) for one in messages]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"A: 1\r\nB:\r\nA:  2 \r\n\r\nrest", [("A", "1"), ("B", ""), ("A", "2 ")]),
        (b"A: caf\xe9: x\n\n", [("A", "caf\xe9: x")]),
        (b"\r\n", []),
        (b"", []),
        (b"A: 1\r\n  and 2\r\nB: 3\r\n\r\n", [("A", "1\r\n  and 2"), ("B", "3")]),
        (b"A: 1\r\nno header\r\n\r\n", [("A", "1")]),
    ],
)
def test_headers(data: bytes, expected: list[tuple[str, str]]) -> None:
    assert PARSE is not http.client.parse_headers
    python, quick = both(data)
    assert python == quick
    assert quick[0] == expected


class Called:
    def __call__(self, **_: Any) -> None:
        """Take anything."""


@pytest.mark.parametrize(
    "function", [lambda **_: None, lambda one: one, Called(), Called().__call__, partial(lambda one, **_: one, 1)]
)
def test_functions_that_take_any_argument(function: Callable[..., Any]) -> None:
    assert bool(compat.accepts_kwargs(function)) == bool(hooks.accepts_kwargs(function))


def test_clients_have_settings_of_their_own() -> None:
    first, second = (boto3.Session("a", "b", region_name=name).client("s3") for name in ("eu-west-1", "us-east-2"))
    assert [one.meta.region_name for one in (first, second)] == ["eu-west-1", "us-east-2"]
    called = Called()
    first.meta.events.register("acme", called)
    assert [(called, None) in one.meta.events.emit("acme") for one in (first, second)] == [True, False]
    assert first.meta.service_model is second.meta.service_model
