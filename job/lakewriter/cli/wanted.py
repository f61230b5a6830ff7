"""Read what the options of ``lakewriter run`` ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Wanted:
    """The options of a load: its id, what it reads in place of the file's messages, the name of its outcome."""

    job_id: str | None
    scheduled_at: str | None
    run_id: str | None
    sync_id: int | None
    messages: str | None
    outcome: str | None
    canary: str | None = None
    quiet: bool = False
    accept: tuple[str, ...] = ()
    reason: str | None = None
    acceptance: str | None = None
    first: str | None = None
    end: str | None = None
    column: str | None = None

    @property
    def for_one_load(self) -> str | None:
        """An option given that means nothing to a continuous run."""
        given = {
            "--job-id": self.job_id,
            "--scheduled-at": self.scheduled_at,
            "--run-id": self.run_id,
            "--sync-id": self.sync_id,
            "--messages": self.messages,
            "--canary": self.canary,
            "--acceptance": self.acceptance,
            "--from": self.first,
            "--to": self.end,
            "--by": self.column,
        }
        return next((option for option, value in given.items() if value is not None), None)
