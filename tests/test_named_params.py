"""Named parameter files: patches of params.yaml for what the default run leaves out."""

from pathlib import Path

import pytest
from builders import REPOSITORY
from repositories import copied

from pipeline.config import load_params
from pipeline.problems import check

PATCHES = sorted((REPOSITORY / "docs" / "params").glob("*.diff"))
ADDS = {
    "objectives": {"agents": {"deeprm_time", "deeprm2_time"}},
    "sizes": {"scenarios": {"slots_60", "bursts", "three"}, "transfers": {"slots_60", "bursts", "three"}},
}


def test_every_patch_is_named_in_the_readme() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert {path.stem for path in PATCHES} == set(ADDS)
    assert [path.name for path in PATCHES if f"git apply docs/params/{path.name}" not in text] == []


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.stem)
def test_a_patch_adds_what_it_says_and_nothing_else(patch: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    folder = copied(tmp_path / "copy", environment)
    before = load_params(folder.root / "params.yaml").model_dump()
    folder.git("init", "--quiet")
    folder.git("apply", str(patch))
    params = load_params(folder.root / "params.yaml")
    check(params)
    after = params.model_dump()
    for section, value in after.items():
        added = ADDS[patch.stem].get(section, set())
        rest = {name: row for name, row in value.items() if name not in added} if added else value
        assert rest == before[section]
        assert not added or set(value) - set(before[section]) == added
