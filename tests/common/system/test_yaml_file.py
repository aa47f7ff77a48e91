"""Files of settings: what is refused, and that every key is found in its line."""

import pytest

from common.errors import ConfigError
from common.system.yaml_file import YamlFile, add_location


def load(folder, content):
    path = folder / "settings.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return YamlFile.load(path)


def test_each_key_is_found_in_its_line_and_a_missing_one_in_that_of_its_section(tmp_path):
    file = load(tmp_path, "# a comment\na: 1\n\nb:\n  c: {d: 2}\n  e: [x, {f: 3}]\n")
    assert file.values == {"a": 1, "b": {"c": {"d": 2}, "e": ["x", {"f": 3}]}}
    for key, line in {"a": 2, "b": 4, "b.c": 5, "b.c.d": 5, "b.e": 6, "b.missing": 4, "b.c.no.where": 5}.items():
        assert file.where(key) == f"{file.path}:{line}"
    assert file.where("missing") == str(file.path)
    with pytest.raises(ConfigError) as caught, add_location(file.where):
        raise ConfigError("b.c.d", expected="3", got=2, do="Change it")
    assert str(caught.value) == f"b.c.d; expected 3; got 2; at {file.path}:5. Change it"


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n"])
def test_an_empty_file_has_no_values(content, tmp_path):
    assert load(tmp_path, content).values is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "a; expected one entry; got another in line 1; at FILE:3"),
        ("a:\n  b: 1\n  b: 1\n", "a.b; expected one entry; got another in line 2; at FILE:3"),
        ("a: {b: 1, b: 1}\n", "a.b; expected one entry; got another in line 1; at FILE:1"),
        ("a: 1\nb: [\n", "settings.yaml; expected YAML; got "),
        ("a: 1\n  b: 2\n", "at FILE:2"),
        ("a: *nobody\n", "found undefined alias 'nobody'; at FILE:1"),
        ("a: !!python/object:os.system {}\n", "at FILE:1"),
        ("a: 1\n? [b, c]\n: 2\n", "at FILE:2"),
        ("a: 1\n---\nb: 2\n", "at FILE:2"),
        ("a: 1\n\tb: 2\n", "at FILE:2"),
        (b"a: \xff\n", "settings.yaml; expected YAML; got "),
        ("a: \x07\n", "settings.yaml; expected YAML; got "),
        *((f"a: {value}\n", "got a value that is not what it looks like") for value in ("2001-99-99", "!!bool x")),
        *((f"a: {value}\n", "got a value that is not what it looks like") for value in ("!!timestamp x", 2000 * "[")),
    ],
)
def test_what_is_wrong_is_named_with_its_line(content, message, tmp_path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, content)
    assert message.replace("FILE", str(tmp_path / "settings.yaml")) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_equal_keys_of_different_sections_and_an_alias_of_what_it_is_in_are_fine(tmp_path):
    assert load(tmp_path, "a: {c: 1}\nb: {c: 2}\n").values == {"a": {"c": 1}, "b": {"c": 2}}
    assert load(tmp_path, "a: &here\n  b: *here\n").lines == {"a": 1, "a.b": 2}


def test_a_number_with_an_exponent_is_a_number(tmp_path):
    numbers = {"a": 1e-4, "b": 1e5, "c": -2.5e-3, "d": 0.5, "e": 3}
    assert load(tmp_path, "a: 1e-4\nb: 1E5\nc: -2.5e-3\nd: .5\ne: 3\n").values == numbers
    assert load(tmp_path, "a: 1e\nb: e5\nc: 1e-4x\n").values == {"a": "1e", "b": "e5", "c": "1e-4x"}
