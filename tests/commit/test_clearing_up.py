"""Uploads that cannot be cleared up are a note in the table's report, and writes that others come before go on."""

import random
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.state_file import StateFile
from lakewriter.commit.store import Unclear
from lakewriter.errors import CommitUnknownError, ConcurrentLoadError, S3AccessDeniedError
from lakewriter.naming import ControlKeys
from lakewriter.records.actions import FilesAction
from lakewriter.records.facets import Quarantine, Removal
from lakewriter.records.state import TableState
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.quarantine_names import QuarantineNames
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

OWN = Attempt("p", "a", "a1", datetime(2024, 1, 15, tzinfo=UTC), timedelta(days=30))
KEYS = ControlKeys("", "p")


class Denying(Memory):
    """Lets nobody list uploads, or abort one."""

    def __init__(self, world, *denied):
        super().__init__(world, lambda: None, random.Random(0), 0)
        self.denied = denied

    def list_uploads(self, prefix):
        if "list" in self.denied:
            raise S3AccessDeniedError("s3:ListBucketMultipartUploads was denied.")
        return super().list_uploads(prefix)

    def abort(self, key, upload_id, bucket=""):
        if "abort" in self.denied:
            raise S3AccessDeniedError("s3:AbortMultipartUpload was denied.")
        super().abort(key, upload_id, bucket)


CLEARING_UP = [
    # what is called, words of the note
    (lambda control, names: attempts.abort_strays(control, names, (), OWN), "uploads of repeated tasks of s.t"),
    (
        lambda control, names: attempts.abort_in_catalog_location(control, names, OWN),
        "uploads of earlier attempts of s.t",
    ),
]


@pytest.mark.parametrize("denied", ["list", "abort"])
@pytest.mark.parametrize(("call", "words"), CLEARING_UP)
def test_uploads_that_cannot_be_cleared_up(call, words, denied):
    world = World()
    control = Control(Denying(world, denied), KEYS, "s.t", pause=lambda _: None)
    attempts.register(control, OWN, lambda _: pytest.fail("nothing is pending"))
    control.write_once(
        KEYS.begin("a", "a0"), {"version": 1, "attempt": "a0", "started": "2024-01-15T00:00:00+00:00", "tables": {}}
    )
    layout = Layout("data", Template.parse("part-{job_id}-{seq}.parquet"))
    names = layout.bind(job_id="a", attempt="a1", start=OWN.started)
    world.stage(names.object_key(0), OWN.load)
    call(control, names)
    (note,) = control.left
    assert words in note
    assert "was denied" in note


def test_uploads_of_an_earlier_attempt_that_cannot_be_listed():
    """The attempt registers all the same."""
    world = World()
    control = Control(Denying(world, "list"), KEYS, "s.t", pause=lambda _: None)
    record = {
        "version": 1,
        "attempt": "a0",
        "started": "2024-01-15T00:00:00+00:00",
        "tables": {"s.t": {"location": "data", "pattern": ".*", "shared": False}},
    }
    control.write_once(KEYS.begin("a", "a0"), record)
    for attempt in ("a0", "a1"):
        own = Attempt("p", "a", attempt, OWN.started, OWN.keep)
        state = attempts.register(control, own, lambda _: pytest.fail("nothing is pending"))
        assert state is not None
        assert state.is_registered("a", attempt)
    assert ["uploads of earlier attempts" in note for note in control.left] == [True]


@pytest.mark.parametrize("is_alike", [True, False])
def test_uploads_of_a_load_that_began_at_the_same_time(is_alike):
    """Airbyte's keys carry the time and no job id."""
    world = World()
    control = Control(Memory(world, lambda: None, random.Random(0), 0), KEYS, "s.t", pause=lambda _: None)
    template = Template.parse("{epoch}_{part}.parquet")
    other = Attempt("p", "b", "b1", OWN.started if is_alike else OWN.started - timedelta(seconds=1), OWN.keep)
    for own in (OWN, other):
        names = Layout("data", template).bind(job_id=own.job_id, attempt=own.id, start=own.started)
        control.write_once(KEYS.begin(own.job_id, own.id), attempts.make_begin_record(own, {"s.t": names}))
        attempts.register(control, own, lambda _: pytest.fail("nothing is pending"))
    names = Layout("data", template).bind(job_id="a", attempt="a1", start=OWN.started)
    upload = world.stage(names.object_key(0), other.load)
    attempts.abort_strays(control, names, (), OWN)
    # Keys of the other time are not this load's.
    assert (list(world.staged), control.left) == ([upload] if is_alike else [], [])


@pytest.mark.parametrize(
    "clear_up",
    [
        lambda control, names: attempts.give_up(control, OWN, names, ()),
        # A task that is tried again has made another upload since.
        lambda control, names: attempts.abort_strays(control, names, (), OWN),
    ],
)
def test_an_attempt_that_another_took_over_from_aborts_its_bad_rows(clear_up):
    """No other attempt makes their keys; its other keys may be those of the one that took over."""
    world = World()
    control = Control(Memory(world, lambda: None, random.Random(0), 0), KEYS, "s.t", pause=lambda _: None)
    for own in (OWN, replace(OWN, id="a2")):
        attempts.register(control, own, lambda _: pytest.fail("nothing is pending"))
    layout = Layout("data", Template.parse("part-{job_id}-{seq}.parquet"))
    names = replace(
        layout.bind(job_id="a", attempt="a1", start=OWN.started, table="s.t"), quarantine="data__quarantine"
    )
    quarantine = QuarantineNames.of(names)
    assert quarantine is not None
    world.stage(quarantine.make_key("on_bad_row", 0), OWN.load)
    other = world.stage(names.object_key(0), OWN.load)
    clear_up(control, names)
    assert list(world.staged) == [other]


@pytest.mark.parametrize("takes", [(), (Removal(key="aside/1.parquet", etag="e"),)])
def test_a_replay_is_bound_only_while_no_other_load_commits(takes):
    """That one may have been another replay of the same files; a plain load is bound all the same."""
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), KEYS, "s.t", pause=lambda _: None)
    began = attempts.register(control, OWN, lambda _: pytest.fail("nothing is pending"))
    assert began is not None
    control.state.move(Edit(lambda state: {"committed": state.committed + 1}))
    quarantine = Quarantine(catalog=FilesAction(), takes=takes) if takes else None
    with pytest.raises(ConcurrentLoadError) if takes else nullcontext():
        attempts.bind(control, OWN, intent(OWN, quarantine=quarantine), began, lambda _: pytest.fail("no client"))


class Contended(Memory):
    """Another writer comes first ``losses`` times; with ``unclear`` there is no answer instead."""

    def __init__(self, losses, *, unclear=False):
        super().__init__(World(), lambda: None, random.Random(0), 0)
        self.losses, self.unclear = losses, unclear

    def create(self, key, body):
        if self.losses:
            self.losses -= 1
            if self.unclear:
                raise Unclear("no answer")
            return None
        return super().create(key, body)


@pytest.mark.parametrize("unclear", [False, True])
@pytest.mark.parametrize(("losses", "succeeds"), [(60, True), (1000, False)])
def test_state_that_others_write_again_and_again(losses, succeeds, unclear):
    """It goes by time: three minutes are some seventy tries."""
    pauses: list[float] = []
    file = StateFile(Contended(losses, unclear=unclear), "state.json", pause=pauses.append)
    if succeeds:
        assert file.move(Edit(committed=1)).committed == 1
        assert len(pauses) == losses
    else:
        with pytest.raises(CommitUnknownError, match="could not be written in 180 s"):
            file.move(Edit(committed=1))


@pytest.mark.parametrize(("losses", "succeeds"), [(60, True), (1000, False)])
def test_control_object_that_gets_no_answer(losses, succeeds):
    control = Control(Contended(losses, unclear=True), KEYS, "s.t", pause=lambda _: None)
    if succeeds:
        control.write_once("k", "{}")
    else:
        with pytest.raises(CommitUnknownError, match="k could not be written in 180 s"):
            control.write_once("k", "{}")


def test_state_is_empty_at_first():
    assert StateFile(Contended(0), "state.json").read() == TableState()
