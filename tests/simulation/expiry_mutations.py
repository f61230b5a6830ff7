"""The rules of expiries and orphans, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

_EXPIRED: Final = "tests/load/test_expired.py -k "
_MAINTAINED: Final = "tests/load/test_maintained.py -k "

EXPIRY_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "expiry-keeps-refs": Mutation(
        "the snapshot of a branch or a tag stays",
        "pass",
        held_by=f"{_EXPIRED}test_what_branches_and_tags_name_stays",
    ),
    "expiry-keeps-young": Mutation(
        "a young snapshot stays that no branch has",
        "pass",
        held_by=f"{_EXPIRED}test_young_snapshots_stay",
    ),
    "expiry-keeps-least": Mutation(
        "a branch keeps so many snapshots, however old",
        "if snapshot.timestamp_ms < before:\n    return",
        held_by=f"{_EXPIRED}test_what_branches_and_tags_name_stays",
    ),
    "expiry-keeps-undo": Mutation(
        "the snapshots of the last load and before it stay",
        "needed = set[int]()",
        held_by=f"{_EXPIRED}test_old_snapshots_go_with_their_files",
    ),
    "expiry-as-it-is": Mutation(
        "the table as it is decides which snapshots go",
        "ids = {snapshot.id for snapshot in work.snapshots}",
        held_by=f"{_EXPIRED}test_changes_between_plan_and_commit",
    ),
    "expired-by-others": Mutation(
        "an expiry is committed again where another tool has expired its snapshots",
        "if False:\n    raise LostRace",
        held_by=f"{_EXPIRED}test_another_tool_expires_within_the_commit",
    ),
    "expired-data-first": Mutation(
        "files are deleted before what they are found by",
        "yield self.lists",
        held_by=f"{_EXPIRED}test_an_expiry_that_is_killed_at_any_call",
    ),
    "expired-files-of-others": Mutation(
        "a file stays that another snapshot has",
        "pass",
        held_by=f"{_EXPIRED}test_files_stay_that_a_merged_manifest_has",
    ),
    "undo-of-expired": Mutation(
        "an undo sees that the snapshot before its load has expired, also where its name is gone",
        "if parent is not None and table.snapshot_by_id(parent) is None:\n"
        '    return "the snapshot before it has expired", None',
        held_by=f"{_EXPIRED}test_an_older_undo_is_refused_with_the_date_of_the_expiry",
    ),
    "orphans-of-all-snapshots": Mutation(
        "what any snapshot has is no orphan",
        "pass",
        held_by=f"{_MAINTAINED}test_what_is_no_orphan",
    ),
    "orphans-of-one-table": Mutation(
        "nothing is an orphan in a folder that two tables share",
        "others: list[str] = []",
        held_by=f"{_MAINTAINED}test_a_folder_that_two_tables_share",
    ),
}
