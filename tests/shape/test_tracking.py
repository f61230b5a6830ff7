"""Row ids; digests are those of ``printf '%s' TEXT | sha256sum``."""

import hashlib
import os
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.shape import digest
from lakewriter.shape.datafusion_digest import digest_with_datafusion, make_context
from lakewriter.shape.digest import compute_digests, digest_with_hashlib
from lakewriter.shape.tracking import compute_row_ids, write_key_texts
from tests.support.sample import values_alone

# (columns, key texts)
KEYS = [
    ([["a|b", "a\\", None, ""]], ["a|b", "a\\", "\\N", ""]),
    ([[1, None]], ["1", "\\N"]),
    ([["a", "b|", "c\\", None], [1, 2, None, None]], ["a|1", "b\\||2", "c\\\\|\\N", "\\N|\\N"]),
    ([["\\N", None], ["x", "x"]], ["\\\\N|x", "\\N|x"]),
    ([[["a|b"]], ["c"]], ['["a\\|b"]|c']),
]


@pytest.mark.parametrize(("columns", "expected"), KEYS)
def test_key_texts_documented_cases(columns: list[list[object]], expected: list[str]) -> None:
    assert write_key_texts([pa.array(values) for values in columns]).to_pylist() == expected


_KEY = st.tuples(*[st.text(alphabet="a|\\N", max_size=3) | st.none()] * 2)


@given(st.lists(_KEY, min_size=1, max_size=30, unique=True))
def test_key_texts_of_several_columns_are_injective(keys: list[tuple[str | None, ...]]) -> None:
    columns = [pa.array(values, pa.string()) for values in zip(*keys, strict=True)]
    assert len(set(write_key_texts(columns).to_pylist())) == len(keys)


def test_row_ids_known_digests() -> None:
    assert compute_row_ids([pa.array(["abc", "1"])]).to_pylist() == [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b",
    ]


TEXTS = pa.array([f"key-{n}é" for n in range(50_000)])


def test_hex_digests_keep_the_order_of_a_large_batch() -> None:
    assert compute_digests(TEXTS).equals(digest_with_hashlib(TEXTS))


@pytest.mark.parametrize("texts", [TEXTS[:0], TEXTS[7:9], TEXTS[:20_000]])
def test_by_datafusion_equals_hashlib(texts: pa.Array) -> None:
    assert digest_with_datafusion(make_context(), texts).equals(digest_with_hashlib(texts))


def test_texts_each_in_a_batch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "digest_with_hashlib", None)
    rng = random.Random(256)
    for _ in range(values_alone() // 20):
        letters = rng.choice(["ab", "|\\\\N", "\0\n é", "\U0001f600\u0301\ud7ff"])
        text = "".join(rng.choices(letters, k=rng.choice([0, 1, rng.randint(2, 70), rng.randint(50, 70), 300])))
        assert compute_digests(pa.array([text])).to_pylist() == [hashlib.sha256(text.encode()).hexdigest()], text


def test_hex_digests_work_in_a_process_forked_after_first_use() -> None:
    compute_digests(TEXTS[:1])
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, compute_digests(TEXTS[:1])[0].as_py().encode())
        os._exit(0)
    os.wait()
    assert os.read(reader, 64).decode() == hashlib.sha256("key-0é".encode()).hexdigest()
