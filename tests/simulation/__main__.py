"""Play histories: ``scripts/simulate --seed N [--histories K] [--seconds S]``; see ``--help``."""

import argparse
import hashlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.simulation.mutations import MUTATIONS, mutate

KINDS = "files,glue,iceberg,airbyte,messages,estuary,batches"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=0, help="so many, from the seed on")
    parser.add_argument("--seconds", type=float, default=0, help="as many as there is time for")
    parser.add_argument("--kinds", default="", help=f"of tables, by default {KINDS}")
    parser.add_argument("--without", default="", help="faults and acts that are left out")
    parser.add_argument(
        "--with", default="", dest="with_", help="what is left out by default, since it is known to fail"
    )
    parser.add_argument("--story", action="store_true", help="tell what happened")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first finding")
    parser.add_argument("--mutation", choices=sorted(MUTATIONS), help="take one rule out first")
    parser.add_argument("--mutations", action="store_true", help="take each rule out once, and make a table of it")
    return parser.parse_args()


def _seeds(given: argparse.Namespace) -> Iterator[int]:
    began, played = time.perf_counter(), 0
    most = given.histories or (1 if not given.seconds else sys.maxsize)
    while played < most and not (given.seconds and time.perf_counter() - began > given.seconds):
        yield given.seed + played
        played += 1


def _play_all(given: argparse.Namespace, kinds: str) -> int:
    # After the rule is taken out, which has to be done before the product is imported.
    from tests.simulation.history import KNOWN, Options, play
    from tests.simulation.stand_ins import installed

    without = (KNOWN | set(given.without.split(","))) - set(given.with_.split(","))
    options = Options(kinds=tuple(kinds.split(",")), without=frozenset(without), story=given.story)
    digest, sums, bad, began = hashlib.sha256(), Counter[str](), 0, time.perf_counter()
    met, played = Counter[str](), Counter[str]()
    with installed():
        for seed in _seeds(given):
            told = play(seed, options)
            digest.update(told.digest.encode())
            met, sums = met + told.met, sums + Counter(calls=told.calls, uploads_left=told.uploads_left)
            played[told.kind] += 1
            sys.stdout.write("".join(f"{line}\n" for line in told.story))
            if told.findings:
                bad += 1
                sys.stdout.write(f"seed {seed} ({told.kind}):\n" + "".join(f"  {text}\n" for text in told.findings))
                if not given.go_on:
                    break
    spent = time.perf_counter() - began
    sys.stdout.write(
        f"{played.total()} histories from seed {given.seed} in {spent:.0f} s, {played.total() / spent:.1f} a second; "
        f"{bad} with findings; digest {digest.hexdigest()[:16]}\n{_shown(played)}\n{_shown(met)}\n{_shown(sums)}\n"
    )
    return 1 if bad else 0


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _play_mutations(given: argparse.Namespace) -> int:
    """Each in a process of its own; 1 where one is not found."""
    missed = 0
    sys.stdout.write("| rule taken out | found after | as |\n|---|---|---|\n")
    for name, mutation in MUTATIONS.items():
        command: list[Any] = [sys.executable, "-m", "tests.simulation", "--mutation", name, "--seed", given.seed]
        command += ["--histories", given.histories or 2000, "--seconds", given.seconds or 120]
        command += ["--kinds", given.kinds or mutation.kinds, "--without", given.without]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        first = next((number for number, line in enumerate(lines) if line.startswith("seed ")), None)
        if first is None:
            missed += 1
            said = lines[0].split(" from")[0] if lines else done.stderr.splitlines()[-1]
            sys.stdout.write(f"| {name}: {mutation.rule} | **not found** | {said} |\n")
        else:
            count = int(lines[first].split()[1]) - given.seed + 1
            sys.stdout.write(f"| {name}: {mutation.rule} | {count} | {lines[first + 1].strip()[:150]} |\n")
        sys.stdout.flush()
    return 1 if missed else 0


def main() -> int:
    """0 where the auditor finds nothing."""
    given = _arguments()
    if given.mutations:
        return _play_mutations(given)
    kinds = mutate(given.mutation).kinds if given.mutation else KINDS
    return _play_all(given, given.kinds or kinds)


if __name__ == "__main__":
    sys.exit(main())
