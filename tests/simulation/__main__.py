"""Play histories: ``scripts/simulate --seed N [--histories K] [--seconds S]``; see ``--help``."""

import argparse
import hashlib
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.guards import REACHED, count_guards, judge_guards, list_guards, write_least
from tests.simulation.kinds import WEIGHTS
from tests.simulation.mutations import MUTATIONS, mutate

_STOP: Final = multiprocessing.get_context("fork").Event()
"""Set by the process that has a finding: no other one begins a history."""
KINDS: Final = ",".join(WEIGHTS)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=0, help="so many, from the seed on")
    parser.add_argument("--seconds", type=float, default=0, help="as many as there is time for")
    parser.add_argument("--processes", type=int, default=1, help="that play at the same time")
    parser.add_argument("--kinds", default="", help=f"of tables, by default {KINDS}")
    parser.add_argument("--several", action="store_true", help="only those that have a pipeline of several tables")
    parser.add_argument("--without", default="", help="faults and acts that are left out")
    parser.add_argument("--story", action="store_true", help="tell what happened")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first finding")
    parser.add_argument("--guards", choices=("judge", "write"), help="count how often each guard of the product acts")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="take one rule out first")
    parser.add_argument("--mutations", action="store_true", help="take each rule out once, and make a table of it")
    return parser.parse_args()


@dataclass
class Sums:
    """What some histories came to; ``digests`` are by their seeds."""

    digests: dict[int, str] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    guards: Counter[str] = field(default_factory=Counter)
    bad: int = 0

    def add(self, other: "Sums") -> None:
        """Those of another process."""
        self.digests |= other.digests
        self.bad += other.bad
        self.guards += other.guards
        for name, counts in other.counts.items():
            self.counts[name] += counts


def _seeds(given: argparse.Namespace, part: int) -> Iterator[int]:
    """Every one of so many processes has its own."""
    began = time.perf_counter()
    most = given.histories or (1 if not given.seconds else sys.maxsize)
    for number in range(part, most, given.processes):
        if _STOP.is_set() or (given.seconds and time.perf_counter() - began > given.seconds):
            return
        yield given.seed + number


def _play_part(given: argparse.Namespace, part: int) -> Sums:
    if given.guards:
        count_guards()
    kinds = mutate(given.mutation).kinds if given.mutation else KINDS
    # After the rule is taken out, which has to be done before the product is imported.
    from tests.simulation.history import Options, play
    from tests.simulation.lakes import has_several_tables
    from tests.simulation.stand_ins import installed

    without = frozenset(given.without.split(","))
    options = Options(kinds=tuple((given.kinds or kinds).split(",")), without=without, story=given.story)
    sums = Sums()
    with installed():
        for seed in _seeds(given, part):
            if given.several and not has_several_tables(seed, options.kinds):
                continue
            told = play(seed, options)
            sums.digests[seed] = told.digest
            for name, counts in (
                ("kinds", {told.kind: 1}),
                ("met", told.met),
                ("sums", {"calls": told.calls, "uploads_left": told.uploads_left}),
            ):
                sums.counts[name].update(counts)
            lines = [*told.story, *([f"seed {seed} ({told.kind}):"] if told.findings else [])]
            sys.stdout.write("".join(f"{line}\n" for line in [*lines, *(f"  {text}" for text in told.findings)]))
            sys.stdout.flush()
            sums.bad += bool(told.findings)
            if told.findings and not given.go_on:
                _STOP.set()
    sums.guards.update(REACHED)
    return sums


def _play_all(given: argparse.Namespace) -> int:
    began, sums = time.perf_counter(), Sums()
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("fork")) as pool:
        for done in [pool.submit(_play_part, given, part) for part in range(given.processes)]:
            sums.add(done.result())
    spent, played = time.perf_counter() - began, len(sums.digests)
    digest = hashlib.sha256("".join(sums.digests[seed] for seed in sorted(sums.digests)).encode()).hexdigest()[:16]
    sys.stdout.write(
        f"{played} histories from seed {given.seed} in {spent:.0f} s, {played / spent:.1f} a second; "
        f"{sums.bad} with findings; digest {digest}\n"
    )
    sys.stdout.write("".join(f"{_shown(counts)}\n" for counts in sums.counts.values()))
    is_guarded = _is_guarded(given, sums)
    return 1 if sums.bad or not is_guarded else 0


def _is_guarded(given: argparse.Namespace, sums: Sums) -> bool:
    """Whether every guard that is counted has acted often enough."""
    if given.guards == "write":
        write_least(sums.guards, len(sums.digests))
    findings = judge_guards(sums.guards, len(sums.digests)) if given.guards else []
    acted = sum(1 for name in list_guards() if sums.guards[name]) if given.guards else 0
    sys.stdout.write(f"{acted} guards acted\n" if given.guards else "")
    sys.stdout.write("".join(f"{text}\n" for text in findings))
    return not findings


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _play_mutations(given: argparse.Namespace) -> int:
    """Each in a process of its own; 1 where one is not found."""
    chosen = [name for name in MUTATIONS if not given.mutation or name == given.mutation]
    sys.stdout.write("| rule taken out | found after | as |\n|---|---|---|\n")
    missed = 0
    with ThreadPoolExecutor(given.processes) as threads:
        for is_found, row in threads.map(lambda name: _try_mutation(given, name), chosen):
            missed += not is_found
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
    return 1 if missed else 0


def _try_mutation(given: argparse.Namespace, name: str) -> tuple[bool, str]:
    """Whether it was found, and its row of the table."""
    mutation = MUTATIONS[name]
    command: list[Any] = [sys.executable, "-m", "tests.simulation", "--mutation", name, "--seed", given.seed]
    command += ["--histories", given.histories or 2000, "--seconds", given.seconds or 120]
    command += ["--kinds", given.kinds or mutation.kinds, "--without", given.without]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith("seed ")), None)
    if first is None:
        said = lines[0].split(" from")[0] if lines else done.stderr.splitlines()[-1]
        if mutation.held_by and _is_held(name, mutation.held_by):
            return True, f"| {name}: {mutation.rule} | {mutation.held_by} | not in {said} |"
        return False, f"| {name}: {mutation.rule} | **not found** | {said} |"
    count = int(lines[first].split()[1]) - given.seed + 1
    return True, f"| {name}: {mutation.rule} | {count} | {lines[first + 1].strip()[:150]} |"


def _is_held(name: str, tests: str) -> bool:
    """Whether the tests fail without the rule."""
    run = f"import sys, pytest; from tests.simulation.mutations import mutate; mutate({name!r}); sys.exit(pytest.main("
    command = [sys.executable, "-c", f"{run}sys.argv[1:]))", *tests.split(), "-q", "-x", "-p", "no:cacheprovider"]
    # Some of these tests, or rows of their tables, are left to the night.
    return (
        subprocess.run(
            command, capture_output=True, check=False, env=os.environ | {"LAKEWRITER_FAULTS": "all"}
        ).returncode
        == 1
    )


def main() -> int:
    """0 where the auditor finds nothing."""
    given = _arguments()
    return _play_mutations(given) if given.mutations else _play_all(given)


if __name__ == "__main__":
    sys.exit(main())
