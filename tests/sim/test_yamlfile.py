"""A file that cannot be read says where, and what was expected, whatever is in it."""

from __future__ import annotations

import pytest

from callwright.errors import ScenarioError
from callwright.sim.yamlfile import read_yaml


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: " + "[" * 900 + "]" * 900, "1:35", "at most 32 levels"),
        ("{" * 900, "1:33", "at most 32 levels"),
        ("a: &a [*a]", "1:8", "a value cannot contain itself"),
        ("a: &a\n  b: [1, *a]", "2:10", "a value cannot contain itself"),
    ],
)
def test_what_is_nested_without_end_is_refused_where_it_is(text, place, problem, tmp_path):
    path = tmp_path / "deep.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        read_yaml(path)
    assert str(refused.value) == f"{path}:{place}: expected YAML; {problem}"


def test_a_value_may_come_twice(tmp_path):
    path = tmp_path / "twice.yaml"
    path.write_text("a: &a [1, 2]\nb: [*a, *a]", encoding="utf-8")
    assert read_yaml(path).mapping()["b"].data() == [[1, 2], [1, 2]]


@pytest.mark.parametrize("tag", ["!!python/object:os.system", "!shop", "!!timestamp", "!!bool", "!!map"])
def test_a_tag_that_does_not_fit_is_no_value(tag, tmp_path):
    path = tmp_path / "tags.yaml"
    path.write_text(f"a: {tag} x", encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"tags\.yaml:1:4: a: expected a text, number or truth value"):
        read_yaml(path).mapping()["a"].scalar()
