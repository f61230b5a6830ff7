"""The exit codes of every command; each error says which of them it ends a command with."""

from typing import Final

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_USAGE: Final = 2
"""lake.yaml or an argument is wrong: the same command fails again."""
EXIT_BREAKS: Final = 3
"""Of ``plan --exit-code``: the load can be done, and readers of the table would break. Of ``app.py --exit-code``: a
deployment would let somebody in, end a refusal, or make data unreadable or deletable."""
EXIT_RETRY: Final = 75
"""EX_TEMPFAIL of sysexits.h: run the same job id again."""
