"""Where a loaded program comes from, and what differs where it is used: warnings, never silence."""

from __future__ import annotations

import warnings
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from lynx_dspy.lm import describe
from lynx_dspy.optimize.manifest import Backbone, Manifest, identity, packages_now


class ArtifactWarning(UserWarning):
    """An artifact is used in other circumstances than those it was made in."""


class BackboneWarning(ArtifactWarning):
    """Another language model, or another decoding."""


class PackageWarning(ArtifactWarning):
    """Another version of a package, or prompts that this version makes otherwise."""


class Origin(BaseCallback):
    """Remembers the manifest of a loaded program and looks at each language model that runs it."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.identity = identity(manifest)
        self._seen: set[Backbone] = set()

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """DSPy's hook before the program runs."""
        if dspy.settings.lm is not None:
            self.check(dspy.settings.lm)

    def check(self, lm: dspy.BaseLM) -> None:
        """Warn once of each language model that is not the manifest's."""
        used = Backbone.described(describe(lm))
        if used not in self._seen:
            self._seen.add(used)
            check_backbone(self.manifest, lm)


def origin(program: dspy.Module) -> Origin | None:
    """Where the program was loaded from; None if it was not."""
    return next((c for c in getattr(program, "callbacks", ()) if isinstance(c, Origin)), None)


def check_backbone(manifest: Manifest, lm: dspy.BaseLM) -> list[str]:
    """What differs between the backbone of a manifest and a language model, with a warning.

    Gives a line a difference; none if it is the same model, asked the same way.
    """
    made, used = _flat(manifest.backbone), _flat(Backbone.described(describe(lm)))
    found = [
        f"{name} {made[name]} there, {used[name]} here" for name in made if made[name] != used[name]
    ]
    if found:
        warnings.warn(
            f"The artifact {manifest.variant} was compiled for another backbone: "
            f"{'; '.join(found)}. Its scores do not hold here.",
            BackboneWarning,
            stacklevel=2,
        )
    return found


def check_packages(manifest: Manifest) -> list[str]:
    """What differs in package versions, with a warning; a line a difference."""
    here = packages_now()
    found = [
        f"{name} {version} there, {here.get(name, 'none')} here"
        for name, version in manifest.packages.items()
        if here.get(name) != version
    ]
    if found:
        warnings.warn(
            f"The artifact {manifest.variant} was made with other packages: {'; '.join(found)}.",
            PackageWarning,
            stacklevel=2,
        )
    return found


def _flat(backbone: Backbone) -> dict[str, Any]:
    return {
        "model": backbone.name,
        "digest": backbone.digest,
        "quantisation": backbone.quantisation,
        "context": backbone.context,
        "temperature": backbone.decoding.temperature,
        "max_tokens": backbone.decoding.max_tokens,
    }
