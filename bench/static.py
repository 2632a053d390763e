"""How often the static check is wrong on right programs, and what it finds in broken ones.

    python -m bench.static --data ../shared/data

Prints, for each set of gold programs, the share with an error (a false alarm: golds run) and with a
doubt; then, for each kind of mutation, how many mutants that no longer compile are found, and how
many are mended into the program that they came from.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from sqlglot import exp

from bench.golds import Gold, golds
from bench.mutants import mutants, with_schema
from lynx_dspy.engines.mend import mend
from lynx_dspy.engines.shadow import shadow
from lynx_dspy.engines.static import check, has_errors, parsed
from lynx_dspy.values import FailureClass


def main() -> int:
    options = _parse()
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    broken: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for number, gold in enumerate(golds(Path(options.data))):
        if not gold.group.startswith(options.group):
            continue
        if not options.only_mutants:
            _judge(gold, counts[gold.group], options.show, options.doubts)
        known = with_schema(gold)
        few = known is not None and (not gold.group.endswith("live") or number % options.every == 0)
        if gold.group.startswith("BIRD, ") and number % 5:
            continue
        if known and few and not options.only_golds:
            for kind, code in mutants(known):
                _mend(known, kind, code, broken[known.schema.dialect, kind], options.show)
    print("\n".join([*_alarms(counts), "", *_mends(broken)]))
    return 0


def _alarms(counts: dict[str, Counter[str]]) -> list[str]:
    rows = [
        f"| {group} | {c['n']} | {c['errors']} | {c['errors'] / c['n']:.1%} | {c['doubts']} |"
        for group, c in counts.items()
    ]
    head = ["| golds | n | false alarms | rate | with a doubt |", "|---|--:|--:|--:|--:|"]
    return [*head, *rows] if rows else []


def _mends(broken: dict[tuple[str, str], Counter[str]]) -> list[str]:
    rows = [
        f"| {dialect} | {kind} | {c['n']} | {c['found'] / c['n']:.0%} | {c['back'] / c['n']:.0%} "
        f"| {c['clean'] / c['n']:.0%} | {c['left'] / c['n']:.0%} |"
        for (dialect, kind), c in sorted(broken.items())
    ]
    head = [
        "| dialect | broken by | n | found | mended to the gold | mended otherwise | left |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    return [*head, *rows] if rows else []


def _mend(gold: Gold, kind: str, code: str, count: Counter[str], show: bool) -> None:
    """Counts one mutant; one that the engine's own compiler accepts is none."""
    compiler = shadow(gold.schema)
    if compiler is not None and not compiler(code):
        return
    count["n"] += 1
    count["found"] += has_errors(check(code, gold.schema))
    mended = mend(code, gold.schema)
    if has_errors(check(mended.code, gold.schema)):
        fate = "left"
    else:
        fate = "back" if _same(mended.code, gold) else "clean"
    count[fate] += 1
    if show and (fate == "clean" or not has_errors(check(code, gold.schema))):
        print(kind, gold.group, gold.id, fate, mended.changes, file=sys.stderr)


def _same(code: str, gold: Gold) -> bool:
    """True if two programs are one but for spelling: names without case, quotes and qualifiers."""
    dialect = gold.schema.dialect
    return _plain(code, dialect) == _plain(gold.code, dialect)


def _plain(code: str, dialect: str) -> str:
    tree = parsed(code, dialect)
    for column in list(tree.find_all(exp.Column)) if tree is not None else ():
        if len(column.parts) == 2:
            column.set("table", None)
    for table in tree.find_all(exp.Table) if tree is not None else ():
        table.set("db", None)
        table.set("catalog", None)
        if table.alias.casefold() == table.name.casefold():
            table.set("alias", None)
    text = tree.sql(dialect, comments=False) if tree is not None else code
    return re.sub(r"[\"`]| AS ", lambda m: " " if m[0] == " AS " else "", text).casefold()


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
    parser.add_argument("--group", default="", help="only sets whose name begins so")
    parser.add_argument("--only-golds", action="store_true")
    parser.add_argument("--only-mutants", action="store_true")
    parser.add_argument("--every", type=int, default=10, help="mutate each N-th of the live golds")
    parser.add_argument("--show", action="store_true", help="print each false alarm")
    parser.add_argument("--doubts", action="store_true", help="print doubts, too")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
