"""What stands in where a model is not asked: rules for single stages, whole parts for ablations.

A rule has the inputs of its stage and gives the same outputs at no token.
"""

from __future__ import annotations

from typing import Any

from lynx_dspy.values import Schema

Fields = dict[str, Any]

NO_SCHEMA = Schema("sqlite", ())
"""Where attempts are compared and nothing is known of their database."""


def no_terms(**_: Any) -> Fields:
    """For `generator.unknown_terms`: nothing is looked up."""
    return {"terms": []}


def no_links(**_: Any) -> Fields:
    """For `generator.align`: the links found by rule stand alone."""
    return {"links": []}


def undistilled(knowledge: str, **_: Any) -> Fields:
    """For `generator.distill`: knowledge is passed on as it was retrieved."""
    return {"semantic": knowledge, "structural": ""}


def definitions_as_intent(definitions: str, **_: Any) -> Fields:
    """For `generator.intent`: the formulation reads the definitions themselves."""
    return {"intent": definitions}


def structure_as_grounding(structure: str, **_: Any) -> Fields:
    """For `generator.ground`: the formulation reads the linked schema itself."""
    return {"grounding": structure}


def no_program(**_: Any) -> Fields:
    """For `generator.formulate` switched off: there is nothing to run."""
    return {"analysis": "", "code": ""}


def no_summary(**_: Any) -> Fields:
    """For `critic.reflect`: the Critic lets the history decay by rule."""
    return {"summary": ""}


def delta_as_suggestion(delta: str, **_: Any) -> Fields:
    """For `critic.diagnose`: the delta read by rule is the advice."""
    return {"suggestion": delta}


def program_unchanged(program: str, **_: Any) -> Fields:
    """For `reviser.repair`: the program stands."""
    return {"analysis": "", "code": program}


def no_explanation(**_: Any) -> Fields:
    """For `verifier.explain`: nothing to compare."""
    return {"explanation": ""}


def no_verdict(**_: Any) -> Fields:
    """For `verifier.compare`: neither accepted nor rejected."""
    return {"items": [], "consistent": None, "mismatch": ""}
