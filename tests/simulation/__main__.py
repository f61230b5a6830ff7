"""Play histories: ``scripts/simulate --seed N [--histories K] [--seconds S]``."""

import argparse
import hashlib
import sys
import time
from collections import Counter

from tests.simulation.history import Options, play
from tests.simulation.lakes import KINDS
from tests.simulation.stand_ins import installed


def main() -> int:
    """0 where the auditor finds nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histories", type=int, default=0, help="so many, from the seed on")
    parser.add_argument("--seconds", type=float, default=0, help="as many as there is time for")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--without", default="", help="faults and acts that are left out")
    parser.add_argument("--story", action="store_true", help="tell what happened")
    parser.add_argument("--go-on", action="store_true", help="do not stop at the first finding")
    told = parser.parse_args()
    without = frozenset(filter(None, told.without.split(",")))
    options = Options(tuple(told.kinds.split(",")), without, told.story)
    began, seed, bad = time.perf_counter(), told.seed, 0
    digest, met, calls = hashlib.sha256(), Counter[str](), 0
    kinds: Counter[str] = Counter()
    with installed():
        while True:
            history = play(seed, options)
            digest.update(history.digest.encode())
            met, calls = met + history.met, calls + history.calls
            kinds[history.kind] += 1
            if told.story:
                sys.stdout.write("\n".join(history.story) + "\n")
            if history.findings:
                bad += 1
                sys.stdout.write(
                    f"seed {seed} ({history.kind}):\n" + "".join(f"  {text}\n" for text in history.findings)
                )
                if not told.go_on:
                    break
            seed += 1
            spent = time.perf_counter() - began
            if (told.histories and seed - told.seed >= told.histories) or (told.seconds and spent > told.seconds):
                break
            if not told.histories and not told.seconds:
                break
    played, spent = sum(kinds.values()), time.perf_counter() - began
    sys.stdout.write(
        f"{played} histories from seed {told.seed}, {calls} calls, {spent:.1f} s, {played / spent:.1f} a second, "
        f"{bad} with findings, digest {digest.hexdigest()[:16]}\n{dict(kinds)}\n{dict(met)}\n"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
