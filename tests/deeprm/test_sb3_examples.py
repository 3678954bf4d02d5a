import re
import subprocess
import sys

import pytest
from builders import REPOSITORY

EXAMPLES = ("maskable_ppo", "ppo_masked")


def told(example: str, *arguments: str) -> str:
    line = [sys.executable, REPOSITORY / "examples" / f"{example}.py", *arguments]
    return subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_trains_and_enters_the_comparison(example: str) -> None:
    said = told(example, "4096")
    assert f"| {example} on online | its mean | difference |" in said
    assert len(re.findall(r"^\| .* % \(", said, flags=re.MULTILINE)) == 15
    assert len((REPOSITORY / "examples" / "maskable_ppo.py").read_text().splitlines()) <= 25


def test_the_page_shows_the_example_that_runs() -> None:
    page = (REPOSITORY / "docs" / "how-to" / "train-with-sb3.md").read_text()
    assert (REPOSITORY / "examples" / "maskable_ppo.py").read_text().strip() in page


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_learns_to_be_better_than_sjf(example: str) -> None:
    found = re.search(r"^\| sjf \|.*\| (\S+) % \((\S+) to (\S+)\)", told(example), flags=re.MULTILINE)
    assert found is not None
    assert float(found[3]) < 0
