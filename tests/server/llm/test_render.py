import itertools
import traceback
from pathlib import Path

import pytest

from common.errors import ConfigError
from server.domain import Wording
from server.llm.base import PROMPTS, Request
from server.llm.marks import Marks
from server.llm.render import FOLDER, SAMPLES, SUFFIX, Prompts
from tests.support.prompts import render

LABELS = (("late_card", "a card that has not come"), ("lost_card", "lost card"), ("fee", "money that was taken"))
CONDITIONS = {
    "nothing": {},
    "label": {"label": "late_card"},
    "name alone": {"label": "lost_card"},
    "words": {"words": 55},
    "attribute": {"attribute": "at night"},
    "several labels": {"label": "late_card", "more": ("lost_card",)},
    "wording": {"label": "fee", "wording": Wording(writer="a nurse", style="no full sentences", label="reason")},
    "marks": {"marks": Marks(types=(("drug", "name of a medicine"),))},
}
SAID = {"words": "55", "attribute": "at night"}
"""What a prompt says for a condition."""
NO_PLACE = {("subtopics", "words"), ("subtopics", "marks"), ("abstracts", "marks")}
"""Kinds of prompts that no request combines with these conditions."""


def request(kind: str = "zero_shot", **fields) -> Request:
    return Request(**({"task_kind": "message", "labels": LABELS, "n": 3, **SAMPLES[kind]} | fields))


@pytest.mark.parametrize(("kind", "condition"), list(itertools.product(PROMPTS, CONDITIONS)))
def test_each_prompt_says_what_is_given_once_and_nothing_else(kind, condition):
    if (kind, condition) in NO_PLACE:
        return
    for n in (1, 3):
        asked = request(kind, n=n, **CONDITIONS[condition])
        assert asked.prompt == kind
        prompt = "\n".join(render(asked))
        shown = () if asked.blanks else asked.shown
        shown += asked.must + tuple(itertools.chain(*asked.good_must))
        for number, text in enumerate(shown):
            inside = sum(text in other for other in shown[:number] + shown[number + 1 :])
            assert prompt.count(text) == 1 + inside
        assert SAID.get(condition, "") in prompt
        requested = {name for name, _ in asked.requested}
        for name, words in LABELS:
            assert (words in prompt) == (name in requested)
            assert name == "fee" or name not in prompt
        assert "  " not in prompt
        assert "\n\n\n" not in prompt
        assert "None" not in prompt
        assert ("JSON list" in prompt) == (n > 1)
        assert n > 1 or kind == "subtopics" or "messages" not in prompt


def test_the_files_are_the_kinds_of_prompts_and_the_page_explains_them_and_each_variable():
    files = {path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}")}
    assert {name for name in files if not name.startswith("_")} == set(PROMPTS) == set(SAMPLES)
    page = (FOLDER / "README.md").read_text("utf-8")
    assert all(f"`{name}{SUFFIX}`" in page for name in files)
    assert all(f"| `{name}` |" in page for name in Prompts()._variables(request()))


def test_other_labels_are_named_only_if_a_setting_asks_for_it():
    asked = request(label="fee")
    system, user = Prompts(name_other_labels=True).render(asked)
    assert all(words in user for _, words in LABELS)
    assert system == render(asked)[0]
    assert Prompts(name_other_labels=True).identity != Prompts().identity
    assert Prompts(name_other_labels=True).render(request()) == render(request())


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_blanks_hide_their_share(share):
    words = [f"w{number}x" for number in range(40)]
    user = render(request(source=(" ".join(words),), blanks=share, seed=5))[1]
    kept = sum(f"{word} " in f"{user} ".replace("\n", " ") for word in words)
    assert abs(kept - 40 * (1 - share)) <= 1


def replaced(folder: Path, text: str, name: str = "zero_shot") -> Prompts:
    (folder / f"{name}{SUFFIX}").write_text(text)
    return Prompts(folder)


def test_a_folder_replaces_files_by_name_and_is_refused_without_any(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ConfigError):
            Prompts(folder)
    prompts = replaced(tmp_path, "Be {{ writer }}.\n---\nWrite {{ n }} {{ kinds }}.\n{% include '_answer.jinja' %}\n")
    system, user = prompts.render(request(wording=Wording(writer="a nurse")))
    assert (system, user.splitlines()[0]) == ("Be a nurse.", "Write 3 messages.")
    dashes = request("contrast", good=("one\n---\ntwo",))
    assert prompts.render(dashes) == render(dashes)
    assert dashes.good[0] in render(dashes)[1]
    assert prompts.digest != Prompts().digest == Prompts().digest


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("zero_shot", "---\nWrite {{ kindz }}.", "line 2.*"),
        ("zero_shot", "---\n\n{% if n == 7 %}{{ kindz }}{% endif %}", "line 3.*"),
        ("_answer", "\n{{ kinds", "line 2.*"),
        ("examples", "---\n{{ good[7].upper() }}", "line 2.*"),
        ("examples", "---\n{{ good.__class__.__mro__ }}", "line 2.*"),
        ("crossing", "---\n\n{% include 'none.jinja' %}", ""),
        ("crossing", "no separator", ""),
        ("zero-shot", "---\nWrite.", ""),
    ],
)
def test_a_wrong_file_is_refused_and_named_with_its_line(tmp_path, name, text, said):
    with pytest.raises(ConfigError) as caught:
        replaced(tmp_path, text, name)
    assert caught.value.what == "llm.prompts"
    assert name in str(caught.value)
    assert said.removesuffix(".*") in str(caught.value)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_text("a key")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / f"_answer{SUFFIX}").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="link"):
        Prompts(tmp_path / "prompts")


@pytest.mark.parametrize("expression", ["labels[{}]", "n + labels[{}]", "kinds | attr({}) + n", "labels.index({})"])
@pytest.mark.parametrize("kind", [kind for kind in PROMPTS if {"good", "source"} & SAMPLES[kind].keys()])
def test_an_error_in_a_run_repeats_no_text(kind, expression, tmp_path):
    field = "good" if "good" in SAMPLES[kind] else "source"
    text = expression.format(f"{field}[0]")
    prompts = replaced(tmp_path, f"---\n{{% if words == 77 %}}{{{{ {text} }}}}{{% endif %}}", kind)
    asked = request(kind, words=77, **{field: ("PRIVATE", *SAMPLES[kind][field][1:])})
    with pytest.raises(ConfigError, match=rf"{kind}{SUFFIX}, line 2") as caught:
        prompts.render(asked)
    assert "PRIVATE" not in "".join(traceback.format_exception(caught.value))


def test_one_prompt_keeps_nothing_for_another(tmp_path):
    (tmp_path / f"_texts{SUFFIX}").write_text("{% set kept = [] %}")
    text = "---\n{% import '_texts.jinja' as memory %}{% if good and memory.kept.append(good[0]) %}{% endif %}"
    with pytest.raises(ConfigError, match="SecurityError"):
        replaced(tmp_path, text + "{{ memory.kept }}", "examples")
