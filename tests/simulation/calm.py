"""The calm after the storm: every job is run again until it is done, and what is done stays as it is."""

from functools import partial
from typing import TYPE_CHECKING, Final

from tests.simulation.books import is_control
from tests.simulation.lakes import Lake
from tests.simulation.streams import Stream
from tests.simulation.weather import Weather

if TYPE_CHECKING:
    from tests.simulation.history import History

TRIES: Final = 6
"""So often is each job id run again after the storm."""


class Calm:
    """That of one history."""

    def __init__(self, history: "History") -> None:
        self.history = history

    def play(self) -> None:
        """Play what comes when nothing fails any more."""
        history = self.history
        history.is_calm = history.sources.is_calm = True
        history.replays.begin_calm()
        history.world.quiet()
        history.network.weather = Weather()
        for connector in history.simulation.connectors.values():
            connector.is_whole = True
        history.simulation.scheduler.switching = 0
        history.losses.mend_all()
        # What is pending in the calm is rare, and what of it has bad rows rarer.
        if (
            history.rng.random() < (0.4 if history.replays.are_some else 0.15)
            and "lost-state" not in history.options.without
        ):
            history.losses.lose_one()
        for lake in history.lakes:
            if lake.is_streamed:
                self._catch_up(lake)
            for job in history.rng.sample(history.jobs[lake.pipeline], len(history.jobs[lake.pipeline])):
                self.finish(lake, job)
            history.undos.finish_repeats(lake)
        history.undos.compact_among_loads()
        if history.undos.are_some:
            history.replays.finish(perhaps=True)
            history.undos.take_back()
        history.replays.finish()
        self._do_again()
        for lake in history.lakes:
            history.alone(partial(self._verify, lake), lake)

    def _do_again(self) -> None:
        """What is done stays as it is when a job runs once more."""
        history = self.history
        before = self._data()
        for lake in history.lakes:
            for job in history.jobs[lake.pipeline][:1]:
                if history.failures.is_done(lake, job) and not history.auditor.is_forgotten(lake.pipeline, job):
                    history.alone(partial(history.attempt, lake, job), lake)
        after = self._data()
        # What a full refresh has replaced goes in its time, which the auditor watches.
        refreshed = tuple(f"{place.path}/" for place in history.auditor.places if place.refreshes)
        retired = {own for own in before - after if own[0].startswith(refreshed)}
        if changed := (before ^ after) - retired:
            history.auditor.find(f"loads that were done changed {sorted(changed)[:3]}")

    def _data(self) -> set[tuple[str, str]]:
        history = self.history
        return {(key, own.etag) for key, own in history.bucket.objects.items() if not is_control(key)}

    def _verify(self, lake: Lake) -> None:
        """The product's own word for it, of loads that nobody else has touched."""
        history = self.history
        if any(history.world.met[name] for name in ("foreign-column", "foreign-commit")):
            return
        for job in [*history.jobs[lake.pipeline], *history.replays.jobs[lake.pipeline]]:
            if history.auditor.is_untouched(lake.pipeline, job):
                for text in history.hands.verify(lake, job):
                    # It is right of an intent that somebody deleted when no step needed it any more.
                    if any(key in text for key in history.auditor.lost_intents):
                        continue
                    history.auditor.find(f"verify of {lake.pipeline} {job}: {text}")

    def _catch_up(self, lake: Lake) -> None:
        history = self.history
        streams = history.streams[lake.pipeline]
        if history.is_adopting:
            self._adopt(lake)
        for stream in history.rng.sample(streams, len(streams)):
            self._catch_up_one(lake, stream)
        for table in lake.spec.named_tables:
            if all(stream.is_lost for stream in streams if stream.table.id == table.id):
                history.auditor.find(f"no copy of the checkpoint is the table's: {table.id}")

    def _catch_up_one(self, lake: Lake, stream: Stream) -> None:
        history = self.history
        for number in range(TRIES):
            if number < 2 or not stream.is_caught_up:
                history.alone(partial(history.stream, lake, 1, stream), lake)
            if stream.is_lost and history.is_adopting:
                # A load of its own that was bound by then has been closed since, and is to be adopted as well.
                self._adopt(lake)
        # A batch that is rightly refused waits for a person.
        is_refused = any(own[::2] == (lake.pipeline, stream.table.id) for own in history.failures.refused)
        if not stream.is_caught_up and not stream.is_lost and not is_refused:
            history.auditor.find("the stream does not catch up in the calm")

    def _adopt(self, lake: Lake) -> None:
        self.history.alone(partial(self.history.hands.adopt, lake), lake)
        streams = self.history.streams[lake.pipeline]
        for table in lake.spec.named_tables:
            next(stream for stream in streams if stream.table.id == table.id).is_lost = False

    def finish(self, lake: Lake, job: str) -> None:
        """Run the job again until it is done, as a scheduler would; a load forgotten by then is not run again."""
        history = self.history
        if history.auditor.is_forgotten(lake.pipeline, job):
            return
        for _ in range(TRIES):
            history.alone(partial(history.attempt, lake, job), lake)
            if history.failures.is_ended(lake, job):
                return
        history.auditor.find(f"load {job} of {lake.kind} is not done after {TRIES} calm tries")
