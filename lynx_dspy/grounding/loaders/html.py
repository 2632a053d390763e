"""HTML as Markdown: what a reader sees, without scripts, styles, navigation and pictures."""

from __future__ import annotations

import re
import warnings

from bs4 import BeautifulSoup, Tag, UnicodeDammit, XMLParsedAsHTMLWarning
from markdownify import ATX, MarkdownConverter

from lynx_dspy.grounding.loaders.text import decoded

_UNSEEN = (
    *("script", "style", "noscript", "template", "svg", "iframe", "object", "img"),
    *("nav", "header", "footer", "aside", "form", "button"),
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n")


def read(raw: bytes) -> str:
    """The page's main text. The encoding is the declared one, else it is told from the bytes."""
    return to_markdown(_text(raw))


def to_markdown(page: str) -> str:
    """The text of an HTML page as Markdown.

    >>> to_markdown("<h2>Churn</h2><p>No <b>orders</b>.</p><script>x()</script>")
    '## Churn\\n\\nNo orders.'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        soup = BeautifulSoup(page, "lxml")
    main = soup.find("main") or soup.find("article") or soup.body or soup
    if main.name != "body" and len(main.get_text(strip=True)) < len(soup.get_text(strip=True)) // 4:
        main = soup.body or soup
    for tag in main.find_all([*_UNSEEN]):
        if not tag.decomposed and not _holds_a_title(tag):
            tag.decompose()
    converter = MarkdownConverter(
        heading_style=ATX,
        strip=["a", "b", "strong", "i", "em", "u"],
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    return _BLANK_LINES.sub("\n\n", converter.convert_soup(main)).strip()


def _holds_a_title(tag: Tag) -> bool:
    """Some pages keep their title in a header element, which says what the page is about."""
    return tag.name == "header" and tag.find(["h1", "h2"]) is not None


def _text(raw: bytes) -> str:
    found = UnicodeDammit(raw, is_html=True)
    declared = found.declared_html_encoding or found.contains_replacement_characters
    marked = raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"))
    return found.unicode_markup or "" if declared or marked else decoded(raw)
