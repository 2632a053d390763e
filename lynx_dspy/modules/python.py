"""The parts that differ where programs are Python: three stages and the static check."""

from __future__ import annotations

from lynx_dspy.engines.python.check import check
from lynx_dspy.engines.python.guard import LONGEST
from lynx_dspy.engines.python.mend import mend
from lynx_dspy.modules.checker import Checked, Checker
from lynx_dspy.modules.generator import Formulate, Generator
from lynx_dspy.modules.reviser import Repair, Reviser
from lynx_dspy.modules.verifier import Explain, Verifier
from lynx_dspy.signatures.python import ExplainPython, FormulatePython, RepairPython
from lynx_dspy.values import Schema


class PythonFormulate(Formulate):
    """`generator.formulate` in Python."""

    asks = FormulatePython


class PythonRepair(Repair):
    """`reviser.repair` in Python."""

    asks = RepairPython


class PythonExplain(Explain):
    """`verifier.explain` of Python."""

    asks = ExplainPython


class PythonChecker(Checker):
    """Mend what has exactly one outcome in a Python program, then report the rest."""

    def __call__(self, code: str, schema: Schema) -> Checked:
        if len(code) > LONGEST:
            return Checked(code)
        mended = mend(code, schema)
        before = check(code, schema) if mended.changes else ()
        return Checked(mended.code, check(mended.code, schema), mended.changes, before)


def python_generator() -> Generator:
    """The Generator, with a last stage that writes Python."""
    generator = Generator()
    generator.formulate = PythonFormulate()
    return generator


def python_reviser() -> Reviser:
    """The Reviser, with a stage that mends Python."""
    reviser = Reviser()
    reviser.repair = PythonRepair()
    return reviser


def python_verifier() -> Verifier:
    """The verifier, with a rubber duck that reads Python."""
    verifier = Verifier()
    verifier.explain = PythonExplain()
    return verifier
