"""YAML within bounds: one line if a file is too deep, too large or not YAML; otherwise its values."""

import time
from itertools import pairwise
from pathlib import Path

import pytest

from pipeline.core.config import load_params
from pipeline.core.config.parsing import DEEPEST, parsed
from pipeline.errors import UserError

NINE = "bcdefghij"
LISTS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(f"a{NINE}")
)
MERGED = "a: &a {k: 1, l: 2}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n" for before, name in pairwise(f"a{NINE}")
)
DEEP = f"not YAML: nested more than {DEEPEST} deep"
MANY = "not YAML: more than 200000 values, those of aliases counted"
WRONG = {
    "brackets": ("seed: 1\nthreads: " + "[" * 2_000, f":2: {DEEP}"),
    "closed brackets": ("seed: 1\nthreads: " + "[" * 1_100 + "]" * 1_100, f":2: {DEEP}"),
    "braces": ("{a: " * 2_000, f":1: {DEEP}"),
    "dashes": ("- " * 2_000, f":1: {DEEP}"),
    "question marks": ("? " * 2_000, f":1: {DEEP}"),
    "a billion laughs": (LISTS, f":6: {MANY}"),
    "a billion keys": (MERGED, f":6: {MANY}"),
    "a list in itself": ("a: &a [*a]", ":1: not YAML: '*a' is in itself"),
    "a mapping in itself": ("a:\n  b: &b\n    c: *b", ":3: not YAML: '*b' is in itself"),
    "an unknown alias": ("a: *b", ":1: not YAML: found undefined alias 'b'"),
    "a day that is none": ("a: 2020-13-45", ": not YAML: month must be in 1..12"),
    "a key twice": ("a: 1\na: 2", ':2: not YAML: found duplicate key "a" with value "2" (original value: "1")'),
    "an object": (
        "a: !!python/object:os.system x",
        ":1: not YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/object:os.system'",
    ),
    "too long": ("a" * 4_000_001, ": expected at most 4000000 letters, found 4000001"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_would_take_all_memory_or_the_stack_is_one_line(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    path, since = tmp_path / "params.yaml", time.monotonic()
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        load_params(path)
    assert str(refused.value) == f"{path}{said}"
    assert time.monotonic() - since < 60


@pytest.mark.parametrize("name", set(WRONG) - {"too long", "an unknown alias", "a key twice", "a day that is none"})
def test_a_file_of_dvc_is_held_to_the_same_bounds(name: str) -> None:
    with pytest.raises(UserError, match=r"^dvc\.lock"):
        parsed(WRONG[name][0], "dvc.lock", of_dvc=True)


@pytest.mark.parametrize("of_dvc", [False, True])
def test_aliases_and_merged_keys_within_bounds_are_read(of_dvc: bool) -> None:
    text = "a: &a {k: 1, l: [2, 3]}\nb: {<<: *a, l: 4}\nc: [*a, *a]"
    row = {"k": 1, "l": [2, 3]}
    assert parsed(text, "params.yaml", of_dvc) == {"a": row, "b": {"k": 1, "l": 4}, "c": [row, row]}


@pytest.mark.parametrize("of_dvc", [False, True])
def test_as_deep_as_may_be_is_read_and_no_deeper(of_dvc: bool) -> None:
    text = "[" * DEEPEST + "]" * DEEPEST
    assert repr(parsed(text, "params.yaml", of_dvc)) == text
    with pytest.raises(UserError, match=f"nested more than {DEEPEST} deep"):
        parsed(f"[{text}]", "params.yaml", of_dvc)


def test_a_key_that_is_a_list_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "params.yaml"
    path.write_text("? [seed]\n: 1\n")
    with pytest.raises(UserError, match="expected words as keys, found a key that is a list, a mapping or a date"):
        load_params(path)
