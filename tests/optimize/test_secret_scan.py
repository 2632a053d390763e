"""The scan refuses keys, names their field, and never repeats them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynx_dspy.errors import ArtifactError
from lynx_dspy.optimize.artifact import Manifest, save
from lynx_dspy.optimize.manifest import Backbone, RecipeRun
from lynx_dspy.optimize.secret_scan import found_in
from lynx_dspy.program import Lynx

SECRETS = [
    "sk-" + "proj0123456789abcdef",
    "ghp_" + "0123456789abcdefghij",
    "xoxb-" + "123456789012-abcdefg",
    "AKIA" + "0123456789ABCDEF",
    "AIza" + "0123456789012345678901234567890123",
    "-----BEGIN RSA PRIVATE KEY-----",
    "Authorization: Bearer " + "abcdef0123456789",
    "postgres" + "://admin:hunter2@db.example.org/x",
    "api_key=" + "a1b2c3d4e5f6g7h8",
]
HARMLESS = [
    "SELECT password, token FROM users WHERE token = session.token",
    "api_key = keys.api_key",
    "The secret is: count distinct customers.",
    "WHERE password = 'hunter2'",
    "sqlite:///store.sqlite, https://example.org/a@b",
    "sk-short",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_each_form_is_found_in_a_demo(secret: str, tmp_path: Path) -> None:
    program = Lynx()
    demo = {"history": f"see {secret}!", "summary": "s"}
    program.critic.reflect.demos = [demo]
    with pytest.raises(ArtifactError, match=r"critic\.reflect\.demos\.0\.history") as caught:
        save(program, tmp_path / "a", Manifest(variant="a", backbone=Backbone(name="x/y")))
    assert secret not in str(caught.value)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("text", HARMLESS)
def test_schemas_with_such_words_are_no_secrets(text: str) -> None:
    assert list(found_in({"demos": [{"code": text}]})) == []


def test_a_key_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "correct horse battery")
    found = list(found_in({"notes": "with correct horse battery in it"}))
    assert found == [("notes", "a secret of this environment")]


def test_decoding_and_recipe_options(tmp_path: Path) -> None:
    program = Lynx()
    program.critic.reflect.config = {"api_key": "plainword"}
    told = Manifest(variant="a", backbone=Backbone(name="x/y"))
    with pytest.raises(ArtifactError, match=r"critic\.reflect\.config\.api_key") as caught:
        save(program, tmp_path / "a", told)
    assert "plainword" not in str(caught.value)
    recipe = RecipeRun(name="gepa", params={"reflection": {"password": "plainword"}})
    with pytest.raises(ArtifactError, match=r"recipe\.params\.reflection\.password"):
        save(Lynx(), tmp_path / "a", told.with_(recipe=recipe))


def test_rows_of_the_evaluation_are_looked_at(tmp_path: Path) -> None:
    told = Manifest(variant="a", backbone=Backbone(name="x/y"))
    with pytest.raises(ArtifactError, match=r"eval\.jsonl: the field '0\.code'"):
        save(Lynx(), tmp_path / "a", told, [{"id": "q", "code": SECRETS[0]}])
