"""Real files of each kind, made by other programs than those that read them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from pypdf import PdfReader, PdfWriter

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding import loaders
from lynx_dspy.grounding.documents import Documents
from lynx_dspy.grounding.loaders import KINDS, Unreadable, html, pdf, text, word

HTML = """<html><head><title>Terms</title><style>p {}</style></head><body><nav>Home</nav>
<main><h1>Terms</h1><p>What our <a href="http://x.y">words</a> mean.</p>
<h2>Channels</h2><table><tr><th>code</th><th>channel</th></tr><tr><td>W</td><td>web_shop</td></tr>
</table><script>alert("x")</script></main></body></html>"""

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(*paragraphs: tuple[str, str]) -> bytes:
    """A DOCX of (style, text) paragraphs."""
    body = "".join(
        f'<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'
        for style, text in paragraphs
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/'
        'content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
        'relationships"><Relationship Id="r" Target="word/document.xml" Type="http://schemas.'
        'openxmlformats.org/officeDocument/2006/relationships/officeDocument"/></Relationships>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}">'
        + "".join(
            f'<w:style w:type="paragraph" w:styleId="H{n}"><w:name w:val="heading {n}"/></w:style>'
            for n in (1, 2)
        )
        + "</w:styles>",
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def printed(pages: Sequence[str], bookmarks: Sequence[tuple[str, int]] = ()) -> bytes:
    """A PDF with the text of `pages`, and (title, page) bookmarks."""
    buffer = io.BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}), PdfPages(buffer) as file:
        for page in pages:
            figure = Figure()
            figure.text(0.1, 0.1, page)
            file.savefig(figure)
    writer = PdfWriter(clone_from=PdfReader(buffer))
    for title, page_number in bookmarks:
        writer.add_outline_item(title=title, page_number=page_number)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


@pytest.mark.parametrize("raw", ["naïve".encode(c) for c in ("utf-8", "utf-8-sig", "utf-16")])
def test_a_text_is_read_in_its_encoding(raw: bytes) -> None:
    assert text.read(raw) == "naïve"


def test_encodings_may_change_within_a_file() -> None:
    raw = "first naïve\r\n".encode() + "second café\n".encode("cp1252") + "third 日本".encode()
    assert text.read(raw).splitlines() == ["first naïve", "second café", "third 日本"]


@given(st.binary(max_size=300))
def test_any_bytes_are_a_text_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(text.read(raw), str)
    except Unreadable as error:
        assert str(error) == "not a text"


def test_a_page_keeps_what_a_reader_sees() -> None:
    found = html.read(HTML.encode())
    assert found.startswith("# Terms\n\nWhat our words mean.\n\n## Channels")
    assert "| W | web_shop |" in found
    assert "alert" not in found and "Home" not in found


@pytest.mark.parametrize("charset", ["cp1251", "utf-8", "shift_jis"])
def test_a_page_is_read_in_its_declared_encoding(charset: str) -> None:
    words = {"cp1251": "Отток", "utf-8": "Überblick", "shift_jis": "顧客"}[charset]
    page = f'<html><head><meta charset="{charset}"></head><body><p>{words}</p></body></html>'
    assert html.read(page.encode(charset)) == words


def test_a_page_of_unending_depth_is_read_or_refused(tmp_path: Path) -> None:
    file = tmp_path / "deep.html"
    file.write_text("<div>" * 3_000 + "bottom" + "</div>" * 3_000)
    try:
        assert "bottom" in loaders.read(file, file.read_bytes())
    except Unreadable as error:
        assert "too deeply" in str(error) or "no text" in str(error)


def test_a_word_document_keeps_its_headings() -> None:
    raw = docx(("H1", "Terms"), ("", "Said once."), ("H2", "Churn"), ("", "Left &amp; gone."))
    assert word.read(raw) == "# Terms\n\nSaid once.\n\n## Churn\n\nLeft & gone."


def test_bookmarks_of_a_pdf_become_headings() -> None:
    raw = printed(
        ["Preface here.\n2 Churn\nA client that left has chur-\nned for us.", "Money\n# 3 sold."],
        [("Churn", 0), ("Profit", 1)],
    )
    assert pdf.read(raw).split("\n") == [
        "Preface here.",
        "",
        "# Churn",
        "",
        "A client that left has churned for us.",
        "",
        "# Profit",
        "Money",
        " # 3 sold.",
        "",
    ]


def test_running_titles_of_a_pdf_are_left_out() -> None:
    raw = printed([f"Handbook\nWords of part {'abc'[i]}.\nPage {i + 1}" for i in range(3)])
    found = pdf.read(raw)
    assert "Handbook" not in found and "Page" not in found
    assert [line for line in found.split("\n") if line] == [f"Words of part {c}." for c in "abc"]


def test_a_pdf_without_text_or_with_a_password_is_refused_with_the_reason() -> None:
    blank = PdfWriter()
    blank.add_blank_page(100, 100)
    buffer = io.BytesIO()
    blank.write(buffer)
    with pytest.raises(Unreadable, match=r"without text.*OCR"):
        pdf.read(buffer.getvalue())
    locked = PdfWriter(clone_from=PdfReader(io.BytesIO(printed(["secret"]))))
    locked.encrypt("key", algorithm="RC4-128")
    buffer = io.BytesIO()
    locked.write(buffer)
    with pytest.raises(Unreadable, match="password"):
        pdf.read(buffer.getvalue())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_documents_are_refused_and_never_crash(data: st.DataObject) -> None:
    ending, whole = data.draw(st.sampled_from([(".pdf", _PDF), (".docx", _DOCX), (".html", HTML)]))
    raw = bytearray(whole.encode() if isinstance(whole, str) else whole)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    try:
        assert loaders.read(Path("x" + ending), bytes(raw[:cut]))
    except Unreadable as error:
        assert "\n" not in str(error)


_PDF = printed(["Some words here.", "More words."], [("Words", 1)])
_DOCX = docx(("H1", "Terms"), ("", "Said once."))


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word, "LARGEST", 100)
    with pytest.raises(Unreadable, match="unpacks to more than"):
        word.read(_DOCX)


def test_a_missing_loader_is_one_line_that_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, ".pdf", loaders.Kind("pdf", ("surely_not_there",)))
    file = tmp_path / "terms.pdf"
    file.write_bytes(_PDF)
    with pytest.raises(BadInput, match=r"pip install 'lynx-dspy\[documents\]'") as caught:
        Documents.open(file)
    assert "\n" not in str(caught.value)


def test_all_kinds_live_in_one_folder(tmp_path: Path) -> None:
    for name, raw in (
        ("a.pdf", _PDF),
        ("b.docx", _DOCX),
        ("c.html", HTML.encode()),
        ("d.md", b"# Notes\nPlain."),
        ("e.pdf", b"%PDF-1.7 cut"),
        ("f.docx", b"PK no archive"),
        ("g.md", b""),
    ):
        (tmp_path / name).write_bytes(raw)
    documents = Documents.open(tmp_path, embedder=None)
    headings = {(p.source, p.heading) for p in documents.passages}
    assert {
        *(("a.pdf", "Words"), ("b.docx", "Terms")),
        *(("c.html", "Terms > Channels"), ("d.md", "Notes")),
    } <= headings
    assert documents.skipped == (
        "e.pdf: not a PDF, or damaged",
        "f.docx: not a DOCX document, or damaged",
        "g.md: no text in it",
    )


def test_files_beyond_the_limit_are_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "LARGEST", 3)
    (tmp_path / "a.md").write_text("long")
    with pytest.raises(BadInput, match="larger than"):
        Documents.open(tmp_path)
