"""Bind the intents of several tables of one attempt together: all of them are committed, or none is."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewriter.commit.at_once import call_all
from lakewriter.commit.attempt import Attempt, bind
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients
from lakewriter.commit.decisions import Decision, Group, conclude_completion, decide
from lakewriter.commit.recover import complete_files, recover
from lakewriter.errors import ConcurrentLoadError, LakeError
from lakewriter.records.changes import Intent
from lakewriter.records.state import TableState


@dataclass(frozen=True)
class PreparedTable:
    """One of the tables: its intent, and the state that it ``began`` with."""

    control: Control
    intent: Intent
    began: TableState


def bind_together(
    attempt: Attempt, members: Sequence[PreparedTable], decision: Decision, open_clients: OpenClients
) -> None:
    """Prepare every table, then write the ``decision`` that all are bound: the point of no return of them all. Then
    complete the files of all tables, before any of them is published.

    ``CONCURRENT_LOAD`` where a table is not as this load was planned on, or another process came between; nothing is
    bound then.
    """
    try:
        call_all(
            lambda member: bind(member.control, attempt, member.intent, member.began, open_clients),
            members,
        )
    except LakeError as error:
        _release(attempt, members, open_clients, error)
        raise
    # Without a clear answer the tables stay prepared: a process that recovers them uses what the store has.
    decision = decision.model_copy(update={"tables": tuple(member.control.table_id for member in members)})
    group = Group.of(members[0].intent)
    if decide(members[0].control, group, decision).bound:
        answers = call_all(lambda member: complete_files(member.control, member.intent, open_clients), members)
        failure = next((answer for answer in answers if answer is not None), None)
        conclude_completion(members[0].control, group, failure)
        return
    refused = ConcurrentLoadError(
        "another process met the tables that are bound together before all of them were; nothing was published.",
        remedy="Run the same job id again.",
    )
    _release(attempt, members, open_clients, refused)
    raise refused


def _release(attempt: Attempt, members: Sequence[PreparedTable], open_clients: OpenClients, error: LakeError) -> None:
    """Withdraw what is prepared. What cannot be withdrawn now is withdrawn by the next load of the table."""

    def release(member: PreparedTable) -> None:
        pending = member.control.state.read().pending
        # Rule release-together
        if pending is not None and (pending.job_id, pending.attempt) == (attempt.job_id, attempt.id):
            recover(member.control, open_clients, mine=attempt.id)

    try:
        call_all(release, members)
    except LakeError as second:
        error.add_note(f"What was prepared could not be withdrawn: {second}")
