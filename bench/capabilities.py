"""The capability matrix: `python -m bench.capabilities [--write README.md]`.

Runs the conformance suite and prints engine × capability as Markdown. A cell is "yes" where all
tests of the capability pass, "no" with a number for the reason where the engine says that it lacks
it, "apart" where the engine's own tests show it, "not run" where the engine cannot run on this
machine, and "FAILS" else.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

SUITE = "tests/engines/conformance"
BEGIN, END = "<!-- capabilities: begin -->", "<!-- capabilities: end -->"
_LACKS = "lacks it: "
_APART = "own tests"
Cells = dict[tuple[str, str], set[str]]


def main() -> None:
    """Print the matrix, or put it between the markers of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--write", type=Path, help="a file with the two marker comments")
    parser.add_argument("--report", type=Path, help="a JUnit report of the suite, made before")
    given = parser.parse_args()
    table = matrix(read(given.report or _run()))
    if given.write is None:
        print(table)
        return
    text = given.write.read_text()
    marked = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.S)
    if not marked.search(text):
        sys.exit(f"{given.write} has no markers {BEGIN} and {END}")
    given.write.write_text(marked.sub(lambda _: f"{BEGIN}\n{table}\n{END}", text))


def _run() -> Path:
    report = Path(tempfile.mkdtemp(prefix="lynx-")) / "report.xml"
    command = [sys.executable, "-m", "pytest", SUITE, "-q", f"--junitxml={report}"]
    subprocess.run(command, check=False, stdout=sys.stderr)
    return report


def read(report: Path) -> Cells:
    """(engine, capability) -> what its tests came to: "yes", "FAILS", or why they did not run."""
    cells: Cells = defaultdict(set)
    for case in ElementTree.parse(report).iter("testcase"):
        told = {p.get("name"): p.get("value") or "" for p in case.iter("property")}
        if "engine" in told:
            cells[told["engine"], told["capability"]].add(_result(case))
    return cells


def _result(case: ElementTree.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return "FAILS"
    skipped = case.find("skipped")
    return "yes" if skipped is None else skipped.get("message") or "not run"


def matrix(cells: Cells) -> str:
    """The table, with a numbered list of the reasons below it."""
    engines = list(dict.fromkeys(engine for engine, _ in cells))
    reasons: dict[str, int] = {}
    lines = [f"| | {' | '.join(engines)} |", f"|---|{':-:|' * len(engines)}"]
    for capability in sorted({capability for _, capability in cells}):
        row = [_cell(cells.get((engine, capability), set()), reasons) for engine in engines]
        lines.append(f"| {capability} | {' | '.join(row)} |")
    notes = [f"{number}. {reason}" for reason, number in reasons.items()]
    return "\n".join([*lines, "", *notes])


def _cell(results: set[str], reasons: dict[str, int]) -> str:
    if "FAILS" in results:
        return "FAILS"
    if results <= {"yes"}:
        return "yes" if results else ""
    reason = min(results - {"yes"})
    lacking = reason.startswith(_LACKS)
    word = "apart" if _APART in reason else "no" if lacking else "not run"
    number = reasons.setdefault(reason.removeprefix(_LACKS), len(reasons) + 1)
    return f"{word} [{number}]"


if __name__ == "__main__":
    main()
