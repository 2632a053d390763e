from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynx_dspy.errors import BadInput
from lynx_dspy.grounding.glossary import Glossary

FILES = {
    "a.yaml": "active customer: ordered within 90 days\nNO: Norway\n12: a dozen\n",
    "b.yml": "- term: active customer\n  definition: ordered within 90 days\n- {x: 1}\n",
    "c.csv": "term,definition\nactive customer,ordered within 90 days\nlonely\n",
    "d.tsv": "active customer\tordered within 90 days\n",
    "e.csv": "Term;Definition;Owner\nactive customer;ordered within 90 days;sales\n",
    "f.md": "# Terms\n\n- **active customer**: ordered within 90 days\n\nSome prose.\n",
    "g.md": "| term | definition |\n|---|:---:|\n| active customer | ordered within 90 days |\n",
    "h.txt": "\ufeffactive customer: ordered within 90 days\r\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_form_gives_the_same_definition(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(FILES[name])
    glossary = Glossary.open(tmp_path / name)
    (passage,) = glossary.look_up("Active Customers")
    assert (passage.text, passage.source) == ("ordered within 90 days", name)


def test_yaml_scalars_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FILES["a.yaml"])
    glossary = Glossary.open(tmp_path / "a.yaml")
    assert glossary.look_up("NO")[0].text == "Norway"
    assert glossary.terms_in("no customer is sold by the 12") == ("12",)


def test_of_terms_that_overlap_the_longer_counts() -> None:
    glossary = Glossary({"customer": "a buyer", "active customer": "recent", "region": "area"})
    assert glossary.terms_in("Active customers by region?") == ("active customer", "region")
    assert glossary.terms_in("Which customer?") == ("customer",)
    assert not glossary.look_up("active")


def test_two_definitions_of_a_term_are_both_kept(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("mrr: monthly revenue\nmrr: without VAT\nmrr: without VAT\n")
    (passage,) = Glossary.open(tmp_path / "a.md").look_up("MRR")
    assert passage.text.startswith("monthly revenue Or: without VAT")


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("a.yaml", b"a: [", "no valid YAML"),
        ("a.yaml", b"!!python/object/apply:os.system ['true']", "defines nothing"),
        ("a.yaml", b"[" * 5_000, "no valid YAML"),
        ("a.md", b"only prose here\n", "defines nothing"),
        ("a.csv", b"", "defines nothing"),
        ("a.csv", b"a\0b", "not a text"),
        ("a.docx", b"PK", "Known: .yaml"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(
    name: str, raw: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(BadInput, match=said) as caught:
        Glossary.open(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no\.yaml"):
        Glossary.open(tmp_path / "no.yaml")


@given(st.dictionaries(st.from_regex(r"[a-z]{4,9}", fullmatch=True), st.text(min_size=1)))
def test_a_term_finds_its_own_definition(entries: dict[str, str]) -> None:
    glossary = Glossary({term: text for term, text in entries.items()})
    for term, text in entries.items():
        if text.strip() and glossary.terms_in(term):
            assert " ".join(text.split()) in {p.text for p in glossary.look_up(term)}


@given(text=st.text())
def test_no_text_breaks_a_reader(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("glossary")
    for suffix in (".yaml", ".csv", ".md"):
        file = folder / f"x{suffix}"
        file.write_text(text.encode(errors="replace").decode(), "utf-8")
        try:
            assert len(Glossary.open(file)) >= 0
        except BadInput as error:
            assert str(file.name) in str(error) or "glossary" in str(error).lower()


def test_copies_are_the_same_object() -> None:
    glossary = Glossary(json.loads('{"a": "b"}'))
    assert copy.deepcopy([glossary])[0] is glossary
    assert copy.copy(glossary) is glossary
