"""Loads that fail: which of them rightly do, what people do about it, and which are a finding."""

from typing import TYPE_CHECKING, Final

from lakewriter.spec.table_spec import Mode
from tests.simulation.books import is_undo, pending_of
from tests.simulation.lakes import Lake

if TYPE_CHECKING:
    from tests.simulation.history import History

DECIDED: Final = (
    # The rest of an input of which a part is committed is not loaded behind another load's.
    "has committed since this one did",
    # A source that sends states of another kind now: a person decides what it goes on from, or undoes the load.
    "no state can be given to it for both",
    "is done under this job id",
    # A person closed a part of it as it is, and nothing tells how far that came.
    "and its intent is gone, which says how far",
)
"""Ends of a load that people have to decide about."""
OVERTAKEN: Final = ("whose undo would take that back as well", "since its undo was planned")
"""Messages of an undo that another engine's commit has made impossible."""
APART: Final = (
    "has not reached that STATE again",
    "the streams are not at the same one",
    "has rows of earlier syncs and no state of the source",
    "in which the stream has no part: the source cannot be asked to send this one alone again",
)
"""Messages of loads whose streams stand apart: a load was undone in some of its tables, its state was kept, its intent
was lost, or a stream was left out for a while."""
UNRECORDED: Final = "no record says"
"""The message of a load whose columns want one name of a table whose loads have left no record of names."""
UNNOTED: Final = "nobody has noted all files"
FORGOTTEN: Final = "is not a committed load of"
"""The message of a replay from a load on whose records were cleared away meanwhile."""
KEEPS_NO_CONDITIONS: Final = "ignores If-None-Match"
WITHDRAWN: Final = (
    # A process that slept through its tries knows of a conflict alone, and withdraws uploads that are there.
    "with a conflict",
    # A person has given the load up.
    "was abandoned before the files of all its tables were complete",
)
"""Messages of loads whose uploads are aborted, and none is lost."""


class Failures:
    """Those of one history; ``refused`` are the loads, by pipeline and table, that are not tried for ever."""

    def __init__(self, history: "History") -> None:
        self.history = history
        self.refused: set[tuple[str, str, str]] = set()

    def judge(self, lake: Lake, job: str, code: str, message: str, table: str = "") -> None:
        """Judge how a load ended, or one ``table`` of it; what is rightly refused there is not tried for ever."""
        history = self.history
        if code == "LOAD_UNDONE":
            # Its rows are loaded again under the id that stands for it.
            self._refuse(lake, job, table)
            history.undos.note(lake, job)
        if self._is_refused(lake, code, message):
            self._refuse(lake, job, table)
            return
        if code == "SOURCE_FAILED" and any(text in message for text in APART) and self._begin_anew(lake):
            return
        if code == "COMMIT_UNKNOWN" and any(text in message for text in OVERTAKEN):
            self._give_undo_up(lake)
        if code in history.world.excuses(history.network.met) or history.replays.is_excess(code, message):
            return
        if not self._is_excused(lake, job, code, message):
            when = "in the calm" if history.is_calm else "in the storm"
            history.auditor.find(f"{when} a load of {lake.kind} fails for good: {code}: {message[:200]}")

    def _is_refused(self, lake: Lake, code: str, message: str) -> bool:
        if code == "SOURCE_FAILED":
            return any(text in message for text in DECIDED)
        if code != "NAME_COLLISION":
            return False
        # A person pins the names of a table that another pipeline writes too, or that a load gave which was ended
        # without its intent.
        if UNRECORDED in message and (lake.is_shared or self.history.world.met["intent-lost"]):
            return True
        # Whose a directory is that one of two pipelines refreshes, the first of them decides.
        return lake.is_shared and any(own.mode is Mode.OVERWRITE for own in lake.spec.tables)

    def _give_undo_up(self, lake: Lake) -> None:
        """Do what the message says, in every table that waits for an undo."""
        for place in self.history.auditor.places:
            job = pending_of(self.history.bucket.objects, place).get("job_id", "")
            if place.pipeline == lake.pipeline and is_undo(job):
                self.history.world.met["undo given up"] += 1
                self.history.hands.draw_abandon(lake, job)()

    def _begin_anew(self, lake: Lake) -> bool:
        """Do what the message says once nothing fails any more; whether something has brought it rightly about."""
        if not self.history.is_calm:
            return False
        self.history.hands.begin_anew(lake)
        return any(self.history.world.met[name] for name in ("undo", "other streams", "lost-intent"))

    def _is_excused(self, lake: Lake, job: str, code: str, message: str) -> bool:
        history = self.history
        match code:
            case "SOURCE_FAILED":
                # Another load has committed a state that this one's connector was not given.
                return lake.kind == "connector" and not history.is_calm
            case "KEY_EXISTS":
                # A process that slept for longer than loads are kept: its id is a new load's, and the old one's files
                # are in its way.
                return history.auditor.is_forgotten(lake.pipeline, job)
            case "PENDING_UNRECOVERABLE":
                # It may also find that its own records were cleared away before it was bound.
                return any(key in message for key in history.auditor.swept)
            case "CHECKPOINT_LOST":
                return history.is_adopting or any(own.is_copied for own in history.streams[lake.pipeline])
            case "SPEC_INVALID" if UNNOTED in message:
                # After a change by hand, or where the state was lost: a person says which files count as read.
                history.hands.note_files(lake)
                return any(history.world.met[name] for name in ("hands", "lost-state", "lost-intent"))
            case "SPEC_INVALID":
                # Who sleeps for a month before he looks whether the store keeps conditions finds his record gone.
                is_swept = bool(history.auditor.swept) and (KEEPS_NO_CONDITIONS in message or FORGOTTEN in message)
                return is_swept or (history.is_adopting and "--go-on" in message)
            case _:
                return False

    def _refuse(self, lake: Lake, job: str, table: str) -> None:
        # After a table that fails, the others do not begin where the file says so; a state is for all streams.
        is_alone = table and lake.spec.on_failure == "continue" and lake.kind != "connector"
        tables = lake.spec.add_groups({table}) if is_alone else [own.id for own in lake.spec.tables]
        self.refused.update((lake.pipeline, job, own) for own in tables)

    def is_done(self, lake: Lake, job: str) -> bool:
        """Whether the job came to its end, and was refused in no table."""
        return not any((pipeline, own) == (lake.pipeline, job) for pipeline, own, _ in self.refused)

    def is_ended(self, lake: Lake, job: str) -> bool:
        """Whether the job is done in every table of its own, but for those in which it is refused."""
        lake = self.history.changes.choose_streams(lake, job)
        tables = {own.id for own in lake.spec.tables if (lake.pipeline, job, own.id) not in self.refused}
        return self.history.auditor.is_done(lake.pipeline, job, tables)
