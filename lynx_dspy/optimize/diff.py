"""What changes between two artifacts: instructions, demos, config, scores; for review."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lynx_dspy.optimize.manifest import to_json
from lynx_dspy.optimize.plainjson import digest_of
from lynx_dspy.optimize.view import Contents, Demo, contents, demo_lines

_COMPARED = (
    "config",
    "backbone",
    "recipe",
    "without",
    "modules",
    "signatures",
    "adapter",
    "metric",
    "splits",
    "scores",
    "packages",
    "parent",
    "notes",
)
"""Parts of the manifest, in the order in which they are shown."""

Change = list[Any]
"""What was there before and what is there after; None where nothing was."""


def compare(before: str | Path, after: str | Path) -> dict[str, Any]:
    """The differences as JSON values; a part without any is left out.

    `manifest` holds `[before, after]` by dotted key, `stages` by predictor a unified diff of the
    instructions and the demos that were removed and added. Raises `ArtifactError`.
    """
    old, new = contents(before), contents(after)
    stages = {path: _stage(old, new, path) for path in sorted({*old.states, *new.states})}
    return {
        "before": {"folder": old.folder, "identity": old.name},
        "after": {"folder": new.folder, "identity": new.name},
        "manifest": _manifest(old, new),
        "stages": {path: found for path, found in stages.items() if found},
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What `compare` found, for people: `-` is before, `+` is after."""
    yield f"--- {found['before']['identity']} ({found['before']['folder']})"
    yield f"+++ {found['after']['identity']} ({found['after']['folder']})"
    if not found["manifest"] and not found["stages"]:
        yield "no differences"
    for key, (was, now) in found["manifest"].items():
        yield f"{key}: {_shown(was)} -> {_shown(now)}"
    for path, stage in found["stages"].items():
        yield f"── {path}"
        yield from (f"  {line}" for line in stage.get("instructions", ()))
        for key, (was, now) in stage.get("decoding", {}).items():
            yield f"  decoding {key}: {_shown(was)} -> {_shown(now)}"
        for mark, name in (("-", "removed"), ("+", "added")):
            for demo in stage.get("demos", {}).get(name, ()):
                yield f"  {mark} demo"
                yield from (f"  {mark}   {line}" for line in demo_lines(demo))
        if "demos" in stage:
            yield f"  {stage['demos']['kept']} demos stay"


def changed(before: Any, after: Any, key: str = "") -> Iterator[tuple[str, Change]]:
    """Each leaf of two JSON values that differs, by dotted key.

    >>> list(changed({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2}))
    [('a.b', [1, 3])]
    """
    if isinstance(before, dict | None) and isinstance(after, dict | None) and before != after:
        before, after = before or {}, after or {}
        for name in dict.fromkeys([*before, *after]):
            below = f"{key}.{name}" if key else name
            yield from changed(before.get(name), after.get(name), below)
    elif before != after:
        yield key, [before, after]


def _manifest(old: Contents, new: Contents) -> dict[str, Change]:
    was, now = to_json(old.manifest), to_json(new.manifest)
    return dict(change for part in _COMPARED for change in changed(was[part], now[part], part))


def _stage(old: Contents, new: Contents, path: str) -> dict[str, Any]:
    was, now = old.states.get(path, {}), new.states.get(path, {})
    found: dict[str, Any] = {}
    texts = was.get("instructions", []), now.get("instructions", [])
    if texts[0] != texts[1]:
        found["instructions"] = list(difflib.unified_diff(*texts, lineterm=""))[2:]
    decoding = dict(changed(was.get("config", {}), now.get("config", {})))
    if decoding:
        found["decoding"] = decoding
    removed, added, kept = _demos(old.demos(path), new.demos(path))
    if removed or added:
        found["demos"] = {"removed": removed, "added": added, "kept": kept}
    return found


def _demos(before: Sequence[Demo], after: Sequence[Demo]) -> tuple[list[Demo], list[Demo], int]:
    was, now = ({digest_of(demo): demo for demo in demos} for demos in (before, after))
    removed = [demo for key, demo in was.items() if key not in now]
    added = [demo for key, demo in now.items() if key not in was]
    return removed, added, len(was.keys() & now.keys())


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "(none)"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "(none)"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
