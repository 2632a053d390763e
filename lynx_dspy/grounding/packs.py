"""Knowledge packs: pages frozen in a folder, with the hash and the source of each (III-A1).

`manifest.json` lists them: `{"format": 1, "pages": [{"file", "title", "source", "sha256"}]}`. A
pack whose pages are not those that were frozen is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.lookup import ByReference, Source, mentions, stems
from lynx_dspy.values import Passage

MANIFEST = "manifest.json"

_FORMAT = 1
_SUFFIXES = (".md", ".txt")
_SOURCE_LINE = re.compile(r"<!-- source: (?P<source>\S+) -->\n?")
_TITLE = re.compile(r"# +(.+)")
_PASSAGES = 3


@dataclass(frozen=True, slots=True)
class Page:
    """One frozen page. `file` is its path in the folder, with slashes."""

    file: str
    title: str
    source: str
    sha256: str


class Pack(ByReference):
    """Pages of a frozen folder as a source of explanations; its text is quarantined."""

    external = True

    def __init__(self, name: str, pages: Iterable[tuple[Page, str]]) -> None:
        self.name = name
        self.pages: dict[str, Page] = {}
        texts: dict[str, str] = {}
        for page, text in pages:
            self.pages[page.file] = page
            texts[page.file] = _SOURCE_LINE.sub("", text, count=1)
        self._documents = Documents.from_texts(texts, embedder=None)

    @classmethod
    def open(cls, folder: str | Path) -> Pack:
        """The pack in `folder`. Raises `BadInput` as `verify` does."""
        root = Path(folder)
        pages = verify(root)
        return cls(
            root.name, [(p, (root / p.file).read_text("utf-8", errors="replace")) for p in pages]
        )

    def look_up(self, term: str) -> Sequence[Passage]:
        """Up to three passages that mention `term`, those of a page of that title first."""
        found = self._documents.retrieve(term, 4 * _PASSAGES)
        held = [p for p in found if mentions(term, f"{self._title(p)} {p.heading} {p.text}")]
        held.sort(key=lambda p: stems(self._title(p)) != stems(term))
        return tuple(
            Passage(p.text, self.pages[p.source].source, self._title(p), p.score)
            for p in held[:_PASSAGES]
        )

    def terms_in(self, text: str) -> Sequence[str]:
        """Nothing: text from outside is taken in only for terms that lack an explanation."""
        return ()

    def _title(self, passage: Passage) -> str:
        return self.pages[passage.source].title


def verify(folder: str | Path) -> tuple[Page, ...]:
    """The pages of the pack in `folder`, if they are those that were frozen.

    Raises `BadInput` in one line for a folder without a readable manifest, and for a page that was
    changed, removed or added.
    """
    root = Path(folder)
    pages = _manifest(root)
    for page in pages:
        found = _sha256(root, page.file)
        if found != page.sha256:
            state = f"has SHA-256 {found[:12]}…" if found else "is missing"
            raise BadInput(
                f"Page {page.file!r} of {str(root)!r} {state}, not {page.sha256[:12]}… as frozen. "
                "Restore it, or freeze the folder anew with `lynx pack build`."
            )
    added = sorted(set(_page_files(root)) - {page.file for page in pages})
    if added:
        raise BadInput(
            f"Page {added[0]!r} of pack {str(root)!r} is not in its {MANIFEST}. "
            "Remove it, or freeze the folder anew with `lynx pack build`."
        )
    return pages


def build(folder: str | Path, source: Source | None = None, terms: Sequence[str] = ()) -> Pack:
    """Freeze the Markdown and text pages of `folder`, after adding what `source` says of `terms`.

    A page's address is that of its first line `<!-- source: ADDRESS -->`, else that of an earlier
    manifest. Raises `BadInput` if there is no page, or if `source` knows nothing of a term.
    """
    root = Path(folder)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for term in terms:
            _add(root, term, source.look_up(term) if source else ())
        pages = [_frozen(root, file, _addresses(root)) for file in _page_files(root)]
        if not pages:
            raise BadInput(f"Folder {str(root)!r} holds no page. Known: {', '.join(_SUFFIXES)}.")
        record = {"format": _FORMAT, "pages": [asdict(page) for page in pages]}
        (root / MANIFEST).write_text(
            json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
    except OSError as error:
        raise BadInput(f"Cannot freeze {str(root)!r}: {error.strerror or error}.") from error
    return Pack.open(root)


def _add(root: Path, term: str, found: Sequence[Passage]) -> None:
    if not found:
        raise BadInput(f"Nothing is found for {term!r}. Check the spelling and the network.")
    for passage in found:
        title = " ".join(passage.heading.split())
        name = re.sub(r"\W+", "-", title.casefold()).strip("-")[:60] or "page"
        text = f"<!-- source: {passage.source} -->\n# {title}\n\n{passage.text.strip()}\n"
        (root / f"{name}.md").write_text(text, "utf-8")


def _frozen(root: Path, file: str, addresses: dict[str, str]) -> Page:
    text = (root / file).read_text("utf-8", errors="replace")
    said = _SOURCE_LINE.match(text)
    title = _TITLE.search(text)
    return Page(
        file,
        title[1].strip() if title else PurePosixPath(file).stem.replace("-", " "),
        said["source"] if said else addresses.get(file, ""),
        _sha256(root, file),
    )


def _addresses(root: Path) -> dict[str, str]:
    if not (root / MANIFEST).exists():
        return {}
    return {page.file: page.source for page in _manifest(root)}


def _page_files(root: Path) -> list[str]:
    files = (f for f in root.rglob("*") if f.suffix.lower() in _SUFFIXES and f.is_file())
    return sorted(f.relative_to(root).as_posix() for f in files)


def _sha256(root: Path, file: str) -> str:
    """The hash of a page, empty if there is no such file within the folder."""
    path = root / file
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _manifest(root: Path) -> tuple[Page, ...]:
    where = f"{MANIFEST} in {str(root)!r}"
    try:
        record = json.loads((root / MANIFEST).read_bytes())
    except OSError as error:
        raise BadInput(
            f"No {where} ({error.strerror}). Freeze a folder of pages with `lynx pack build`."
        ) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"The {where} is no JSON: {str(error)[:120]}.") from error
    listed = record.get("pages") if isinstance(record, dict) else None
    if not isinstance(listed, list) or record.get("format") != _FORMAT:
        raise BadInput(f"The {where} is not of format {_FORMAT} with a list of pages.")
    return tuple(_page(item, where) for item in listed)


def _page(item: object, where: str) -> Page:
    fields = ("file", "title", "source", "sha256")
    values = [item.get(name) for name in fields] if isinstance(item, dict) else [None]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) != len(fields):
        raise BadInput(f"The {where} lists a page without one of: {', '.join(fields)}.")
    return Page(*texts)
