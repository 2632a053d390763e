"""Predictions in the benchmarks' own formats, read and written.

bird      a JSON object {"0": "SQL\\t----- bird -----\\tdb_id", ...}, paired by position
spider    a text with one query a line, paired by position
spider2   a folder of <id>.sql or <id>.csv, paired by id
jsonl     a JSON object a line with `id` and `code` (as `lynx eval` writes), paired by id
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

from lynx_dspy.datasets.files import read_json, read_records
from lynx_dspy.errors import BadInput, UnknownName
from lynx_dspy.metrics.queries import one_line

_BIRD_MARK = "\t----- bird -----\t"

_NO_PROGRAM = "NO_PROGRAM"
"""Stands for an empty prediction where a blank line would shift the others; it fails to run."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A program, or the path of a CSV with its result. `db` is empty where the format has none."""

    code: str = ""
    csv: str = ""
    db: str = ""


Keyed = Mapping[str, Prediction]
"""Predictions by id, or by position ("0", "1", ...) in formats that pair by position."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a format is recognised, read and written, and whether it pairs by position."""

    fits: Callable[[Path], bool]
    read: Callable[[Path], Keyed]
    write: Callable[[Path, Sequence[dspy.Example], Sequence[str]], None]
    by_position: bool


def read(
    path: str | Path, examples: Sequence[dspy.Example], kind: str = ""
) -> list[Prediction | None]:
    """One prediction an example, in their order; None where a format by id has none.

    The format is told by the path if `kind` does not name it. Raises `BadInput` if there is no such
    file, nothing pairs, or predictions by position are not as many as the examples or are for other
    databases: then they belong to another revision or split.
    """
    path = Path(path)
    chosen = _format(path, kind)
    found = chosen.read(path)
    keys = [str(i) for i in range(len(examples))] if chosen.by_position else _ids(examples)
    if chosen.by_position and set(keys) != found.keys():
        raise BadInput(
            f"{path} holds {len(found)} predictions for {len(examples)} questions; they pair by "
            "position, so both must be of the same split and revision."
        )
    paired = [found.get(key) for key in keys]
    if not any(paired):
        raise BadInput(f"{path} has no prediction for any of the {len(examples)} questions' ids.")
    for one, prediction in zip(examples, paired, strict=True):
        if prediction and prediction.db and prediction.db != one.db:
            raise BadInput(
                f"{path}: the prediction for question {one.id} is for the database "
                f"{prediction.db}, the question is about {one.db}; another revision or split?"
            )
    return paired


def write(
    path: str | Path, examples: Sequence[dspy.Example], programs: Sequence[str], kind: str
) -> None:
    """Write one program an example in the format `kind`, as the official scripts read it.

    Raises `UnknownName` for a format that is not there and `BadInput` if the numbers differ.
    """
    if kind not in FORMATS:
        raise UnknownName("prediction format", kind, FORMATS)
    if len(examples) != len(programs):
        raise BadInput(f"Got {len(programs)} programs for {len(examples)} questions.")
    FORMATS[kind].write(Path(path), examples, programs)


def _format(path: Path, kind: str) -> Format:
    if kind and kind not in FORMATS:
        raise UnknownName("prediction format", kind, FORMATS)
    if not path.exists():
        raise BadInput(f"No predictions at {path}.")
    fitting = [form for name, form in FORMATS.items() if name == kind or form.fits(path)]
    return FORMATS[kind] if kind else fitting[0]


def _ids(examples: Sequence[dspy.Example]) -> list[str]:
    return [one.id for one in examples]


def _read_bird(path: Path) -> Keyed:
    found = read_json(path)
    if not isinstance(found, dict):
        raise BadInput(f'{path} is not a BIRD prediction file: {{"0": "SQL{_BIRD_MARK}db", ...}}.')
    predictions = {}
    for key, value in found.items():
        code, _, db = str(value).partition(_BIRD_MARK) if isinstance(value, str) else ("", "", "")
        predictions[key] = Prediction(code=code.strip(), db=db.strip())
    return predictions


def _write_bird(path: Path, examples: Sequence[dspy.Example], programs: Sequence[str]) -> None:
    pairs = enumerate(zip(examples, programs, strict=True))
    found = {str(i): f"{program}{_BIRD_MARK}{one.db}" for i, (one, program) in pairs}
    path.write_text(json.dumps(found, indent=4, ensure_ascii=False), encoding="utf-8")


def _read_spider(path: Path) -> Keyed:
    lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    return {str(i): Prediction(code=line.split("\t")[0].strip()) for i, line in enumerate(lines)}


def _write_spider(path: Path, examples: Sequence[dspy.Example], programs: Sequence[str]) -> None:
    pairs = zip(examples, programs, strict=True)
    lines = [one_line(program, one.dialect) or _NO_PROGRAM for one, program in pairs]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _read_spider2(path: Path) -> Keyed:
    results = {p.stem: Prediction(csv=str(p)) for p in sorted(path.glob("*.csv"))}
    queries = {
        p.stem: Prediction(
            code=p.read_text(encoding="utf-8-sig"), csv=results.get(p.stem, _NONE).csv
        )
        for p in sorted(path.glob("*.sql"))
    }
    return {**results, **queries}


def _write_spider2(path: Path, examples: Sequence[dspy.Example], programs: Sequence[str]) -> None:
    path.mkdir(parents=True, exist_ok=True)
    for one, program in zip(examples, programs, strict=True):
        (path / f"{_file_name(one.id)}.sql").write_text(program, encoding="utf-8")


def _file_name(id: str) -> str:
    if not id or id != Path(id).name:
        raise BadInput(f"The id {id!r} cannot be a file name, which the spider2 format needs.")
    return id


def _read_jsonl(path: Path) -> Keyed:
    records = read_records(path, ("id", "code"))
    return {
        str(r["id"]): Prediction(code=r["code"] or "", db=str(r.get("db", ""))) for r in records
    }


def _write_jsonl(path: Path, examples: Sequence[dspy.Example], programs: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8") as stream:
        for one, program in zip(examples, programs, strict=True):
            stream.write(json.dumps({"id": one.id, "db": one.db, "code": program}) + "\n")


_NONE = Prediction()

FORMATS: dict[str, Format] = {
    "spider2": Format(Path.is_dir, _read_spider2, _write_spider2, by_position=False),
    "jsonl": Format(lambda p: p.suffix == ".jsonl", _read_jsonl, _write_jsonl, by_position=False),
    "bird": Format(lambda p: p.suffix == ".json", _read_bird, _write_bird, by_position=True),
    "spider": Format(lambda p: p.is_file(), _read_spider, _write_spider, by_position=True),
}
"""By name, in the order in which a path is tried."""
