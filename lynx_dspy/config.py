"""Every knob that steers the program, in one frozen place.

A profile is a LynxConfig measured for a kind of backbone: `for_backbone` picks it by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from lynx_dspy.values import Limits


@dataclass(frozen=True, slots=True)
class LynxConfig:
    """The knobs of the program; the sections are those of the LYNX paper."""

    top_k: int = 6
    """Passages kept after re-ranking (III-A1)."""

    document_tokens: int = 600
    """Budget of the retrieved passages that the stages may see (III-A1)."""

    schema_tokens: int = 1_500
    """Budget of the structural share K*_struct (III-A2)."""

    syntax_tokens: int = 250
    """Budget of the syntax share K*_syn (III-A2)."""

    history_tokens: int = 700
    """Budget of the rendered failure history H_t (III-B)."""

    max_rounds: int = 10
    """Repairs after the first program, at most (III-C)."""

    stagnation_rounds: int = 3
    """Repairs in a row without progress after which the loop gives up (III-B)."""

    verify_rounds: int = 1
    """Corrections that a rubber-duck mismatch may ask for (III-C)."""

    stage_max_tokens: int = 512
    """Longest reply of a stage; weak models run on."""

    preview_rows: int = 5
    """Rows of the result that the verifier is shown (III-C)."""

    limits: Limits = field(default_factory=Limits)
    """What one run of a generated program may use."""

    def with_(self, **changes: Any) -> LynxConfig:
        """A copy with some knobs changed."""
        return replace(self, **changes)
