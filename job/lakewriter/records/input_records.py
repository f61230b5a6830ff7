"""Define what a table's state and its intents record of the source's files that loads have read."""

from lakewriter.control_object import ControlObject, sparse
from lakewriter.receipt import RepeatedFiles


class InputPart(ControlObject):
    """An object with some of the files that loads have read, and how many these are."""

    key: str
    sha256: str
    length: int
    files: int


class Inputs(ControlObject):
    """The files that a table's loads have read.

    committed  the table's number of changes up to which no load is missing. Where the state counts more, a load came
               between whose files nobody noted, and the record has less than was read
    without    job ids that were undone: their files in ``parts`` do not count
    repeats    whether a load has read files again: an undo cannot know then which are still in the table
    """

    committed: int
    parts: tuple[InputPart, ...] = ()
    without: tuple[str, ...] = sparse(())
    repeats: bool = sparse(False)

    def count_files(self) -> int:
        """Return how many files the parts have."""
        return sum(part.files for part in self.parts)


class JoinedParts(ControlObject):
    """Parts that were joined: ``parts`` have the content of those with the keys ``of``, except for the jobs
    ``without``."""

    parts: tuple[InputPart, ...]
    of: tuple[str, ...]
    without: tuple[str, ...] = ()


class InputsIntent(ControlObject):
    """What a load adds to the record.

    before      the record that the load was planned on
    adds        files that the load has read, and no load before it
    exclusive   whether its rows depend on the record
    is_partial  whether it may have read more files
    """

    before: Inputs
    adds: tuple[InputPart, ...] = ()
    joined: JoinedParts | None = sparse(None)
    exclusive: bool = False
    is_partial: bool = sparse(False)
    repeated: RepeatedFiles = RepeatedFiles()


def follow_load(inputs: Inputs | None, intent: InputsIntent | None, committed: int) -> Inputs | None:
    """Return the record after a load that is the change after ``committed``; without an ``intent`` it has noted no
    files, and the record does not count it."""
    if intent is None:
        return inputs
    before = inputs or intent.before
    parts, without = before.parts, before.without
    # Rule joined-of-parts
    if intent.joined is not None and set(intent.joined.of) <= {part.key for part in parts}:
        parts = (*(part for part in parts if part.key not in intent.joined.of), *intent.joined.parts)
        without = tuple(job for job in without if job not in intent.joined.without)
    return before.model_copy(
        update={
            # Rule files-noted
            "parts": (*parts, *intent.adds),
            "without": without,
            "repeats": before.repeats or bool(intent.repeated.again),
            # Rule partial-lacks
            "committed": before.committed if intent.is_partial else _count(before, committed),
        }
    )


def follow_other(inputs: Inputs | None, committed: int) -> Inputs | None:
    """Return the record after a change that reads no file of the source, such as a replay."""
    return inputs and inputs.model_copy(update={"committed": _count(inputs, committed)})


def follow_undo(inputs: Inputs | None, job_id: str, committed: int, *, is_whole: bool) -> Inputs | None:
    """Return the record after the undo of a load: its files count as not read, if no other load has read them too.

    ``is_whole`` says that the record lacks no load, whatever it counts: only the undone load was missing.
    """
    if inputs is None:
        return Inputs(committed=committed + 1) if is_whole else None
    # Rule repeats-stay
    if inputs.repeats:
        return inputs
    without = (*inputs.without, job_id) if inputs.parts else ()
    # Rule files-of-undone
    changes = {"without": without, "committed": committed + 1 if is_whole else _count(inputs, committed)}
    return inputs.model_copy(update=changes)


def _count(inputs: Inputs, committed: int) -> int:
    """Return the number of changes that the record covers. A record that lacks a load never gets it later."""
    # Rule files-lacking
    return committed + 1 if inputs.committed == committed else inputs.committed
