"""Faults for a test to arrange: calls that fail, and calls whose answer is lost."""

from collections.abc import Callable

from tests.support.call import Answer, Call

Proceed = Callable[[Call], Answer]
Rule = Callable[[Call, Proceed], Answer]
"""Sees a call and what would answer it: it may change the call, answer itself, or change the answer."""


class ConnectionDroppedError(ConnectionError):
    """The answer is lost: the connection closes without one."""


class Times:
    """A rule that acts on the first so many calls that match, and lets the others pass."""

    def __init__(self, match: Callable[[Call], bool], times: int, rule: Rule) -> None:
        self._match, self._left, self._rule = match, times, rule

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        """Act, or pass the call on."""
        if self._left <= 0 or not self._match(call):
            return proceed(call)
        self._left -= 1
        return self._rule(call, proceed)


def drop(call: Call, proceed: Proceed) -> Answer:
    """Apply the call and lose its answer."""
    proceed(call)
    raise ConnectionDroppedError


def chain(rules: list[Rule], last: Proceed) -> Proceed:
    """``last`` behind the rules; the first rule sees a call first."""
    for rule in reversed(rules):
        last = _before(rule, last)
    return last


def _before(rule: Rule, proceed: Proceed) -> Proceed:
    return lambda call: rule(call, proceed)
