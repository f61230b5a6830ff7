"""Many requests at once: answers in order, the first error, few threads inside others."""

import threading
import time

import pytest

from lakewriter.commit.at_once import LEAST_INSIDE, MOST, call_all


def test_answers_are_in_the_order_of_the_items():
    def call(number: int) -> int:
        time.sleep(0.01 * (3 - number))
        return number * number

    assert call_all(call, range(4)) == [0, 1, 4, 9]
    assert call_all(call, ()) == []


def test_the_first_error_is_raised_when_those_under_way_have_ended():
    begun, ended = [], []

    def call(number: int) -> None:
        begun.append(number)
        time.sleep(0.002 * (number % 7))
        ended.append(number)
        if number in (2, 5):
            raise ValueError(number)

    with pytest.raises(ValueError, match="2"):
        call_all(call, range(1000))
    assert sorted(begun) == sorted(ended)
    assert len(begun) < 1000


@pytest.mark.parametrize(("outer", "most_inside"), [(1, MOST), (2, MOST // 2), (100, LEAST_INSIDE)])
def test_threads_are_shared_by_what_is_called_inside(outer, most_inside):
    inside: list[set[str]] = []

    def call_inner(_: int) -> set[str]:
        names: set[str] = set()

        def call(_: int) -> None:
            names.add(threading.current_thread().name)
            time.sleep(0.001)

        call_all(call, range(100))
        inside.append(names)
        return names

    call_all(call_inner, range(outer))
    assert max(map(len, inside)) <= most_inside
    assert len(inside) == outer
