"""The rules of full refreshes, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

REFRESH_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "switch-number": Mutation(
        "a process that comes late finds that its switch, or a later one, is done in Glue",
        "if last == number:",
        kinds="refresh",
    ),
    "latest-number": Mutation(
        "a process that comes late does not name its files in place of later ones",
        "elif False:",
        kinds="refresh",
    ),
    "give-up-first": Mutation(
        "the state gives a refresh up before its files are deleted",
        (
            "if intent is not None and entry.generation is not None:\n"
            "    delete_own(control.store, intent)\n"
            "elif intent is not None:\n"
            "    delete_all(control, ((removal.key, removal.etag) for removal in intent.removes))"
        ),
        kinds="refresh",
        statements=2,
    ),
    "shown-again-stays": Mutation(
        "what an undo shows again is not deleted in its time",
        "retiring = state.retiring",
        kinds="refresh",
    ),
    "folder-of-its-own": Mutation(
        "each full refresh has a folder in which nothing lies",
        "return max(0 * state.generation, *(0 for _ in numbers), 0) + 1",
        kinds="refresh",
    ),
    "undo-of-the-last": Mutation(
        "only the refresh that readers see is undone",
        "if False:",
        kinds="refresh",
    ),
}
