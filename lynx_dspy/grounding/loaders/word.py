"""DOCX as Markdown: headings, lists and tables, by way of HTML; pictures and links are left."""

from __future__ import annotations

import io
import zipfile
from xml.parsers.expat import ExpatError

import mammoth

from lynx_dspy.grounding.loaders import LARGEST, Unreadable
from lynx_dspy.grounding.loaders.html import to_markdown

_DAMAGED = (zipfile.BadZipFile, ExpatError, LookupError, ValueError, AttributeError, OSError)
"""What mammoth raises on archives that are no Word document, or half of one."""


def read(raw: bytes) -> str:
    """The document's text. Raises `Unreadable` if it is no DOCX, or unpacks to too much."""
    archive = io.BytesIO(raw)
    try:
        with zipfile.ZipFile(archive) as parts:
            if sum(part.file_size for part in parts.infolist()) > LARGEST:
                raise Unreadable(f"unpacks to more than {LARGEST // 1_000_000} MB")
        page = mammoth.convert_to_html(archive, convert_image=_no_image).value
    except _DAMAGED as error:
        raise Unreadable("not a DOCX document, or damaged") from error
    return to_markdown(page)


def _no_image(image: object) -> list[object]:
    """Pictures are never opened, wherever a document says that they are."""
    return []
