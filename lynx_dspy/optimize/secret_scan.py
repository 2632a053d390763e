"""A scan for keys and passwords, so that none is shipped with an artifact.

It knows the forms of keys and what is set in this environment. Words such as `password` alone are
none: they are names of columns in many a schema.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from lynx_dspy.errors import ArtifactError
from lynx_dspy.optimize.plainjson import texts

_FORMS = {
    "an API key": re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf)[-_][A-Za-z0-9_-]{16,}|\bAIza[\w-]{30,}"),
    "a GitHub or Slack token": re.compile(r"\b(?:gh[pousr]_|github_pat_|xox[abprs]-)[\w-]{10,}"),
    "an AWS key": re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    "a signed token": re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    "a bearer token": re.compile(r"(?i)\bbearer\s+[\w.~+/=-]{16,}"),
    "a password in an address": re.compile(r"\b[a-z][\w+.-]*://[^\s/:@]*:[^\s/@]+@"),
    "an assigned key": re.compile(
        r"(?i)\b(?:api[_-]?key|access[_-]?token|client[_-]?secret)[\"']?\s*[:=]\s*[\"']?"
        r"(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{16,}"
    ),
}
_SECRET_NAME = re.compile(r"(?i)(?:^|_)(?:key|token|secret|password|passwd|credentials?)$")
_SECRET_OPTION = re.compile(r"(?i)^(?:api[_-]?key|authorization|password|secret|.*token)$")
_SHORTEST = 12


def require_none(name: str, value: Any) -> None:
    """Raise `ArtifactError` naming the field of the JSON value `value` that holds a secret."""
    for field, what in found_in(value):
        raise ArtifactError(
            f"{name}: the field {field!r} holds what looks like {what}. Artifacts are shared: take "
            "it out of the demos, instructions, options or notes, and save again."
        )


def found_in(value: Any) -> Iterator[tuple[str, str]]:
    """Each field with a secret, and what kind it is; never the secret itself.

    >>> list(found_in({"config": {"api_key": "0123456789"}}))
    [('config.api_key', 'a secret option')]
    """
    here = _environment(os.environ)
    for path, text in texts(value):
        option = path.rpartition(".")[2]
        if text != option and _SECRET_OPTION.match(option) and len(text) > 5:
            yield path, "a secret option"
        elif any(secret in text for secret in here):
            yield path, "a secret of this environment"
        else:
            what = next((kind for kind, form in _FORMS.items() if form.search(text)), None)
            if what:
                yield path, what


def _environment(variables: Mapping[str, str]) -> set[str]:
    """Values of variables that are named like secrets."""
    return {
        value
        for name, value in variables.items()
        if _SECRET_NAME.search(name) and len(value) >= _SHORTEST
    }
