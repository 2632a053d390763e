"""LYNX as a DSPy program: ask a database a question, get a verified program.

Names are loaded when they are first used, so that `import lynx_dspy` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lynx_dspy import metrics
    from lynx_dspy.ablations import ablate
    from lynx_dspy.config import LynxConfig, profile
    from lynx_dspy.engines import connect
    from lynx_dspy.grounding.documents import Documents
    from lynx_dspy.grounding.glossary import Glossary
    from lynx_dspy.grounding.packs import Pack
    from lynx_dspy.grounding.web import Wikipedia
    from lynx_dspy.lm import lm
    from lynx_dspy.optimize.artifact import load
    from lynx_dspy.optimize.compile import compile
    from lynx_dspy.optimize.evaluate import evaluate
    from lynx_dspy.program import Lynx

__version__ = "0.1.0"

__all__ = [
    "Documents",
    "Glossary",
    "Lynx",
    "LynxConfig",
    "Pack",
    "Wikipedia",
    "ablate",
    "compile",
    "connect",
    "evaluate",
    "lm",
    "load",
    "metrics",
    "profile",
]

_HOMES = {
    "Documents": "lynx_dspy.grounding.documents",
    "Glossary": "lynx_dspy.grounding.glossary",
    "Lynx": "lynx_dspy.program",
    "LynxConfig": "lynx_dspy.config",
    "Pack": "lynx_dspy.grounding.packs",
    "Wikipedia": "lynx_dspy.grounding.web",
    "ablate": "lynx_dspy.ablations",
    "connect": "lynx_dspy.engines",
    "compile": "lynx_dspy.optimize.compile",
    "evaluate": "lynx_dspy.optimize.evaluate",
    "lm": "lynx_dspy.lm",
    "load": "lynx_dspy.optimize.artifact",
    "metrics": "lynx_dspy.metrics",
    "profile": "lynx_dspy.config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lynx_dspy' has no attribute {name!r}")
    home = import_module(_HOMES[name])
    value = home if name == "metrics" else getattr(home, name)
    globals()[name] = value
    return value
