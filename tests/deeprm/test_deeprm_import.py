import subprocess
import sys

import pytest
from builders import REPOSITORY

HEAVY = ("torch", "mlflow", "dvc", "pandas", "numba", "matplotlib")
USED = "import deeprm; env = deeprm.make('deeprm/Pool-v0'); env.reset(seed=1); env.step(0)"


@pytest.mark.parametrize(
    ("code", "without"),
    [("import deeprm", HEAVY), (USED, ("torch", "mlflow", "dvc", "matplotlib"))],
    ids=["import", "an episode"],
)
def test_neither_the_import_nor_an_episode_loads_what_it_does_not_need(code: str, without: tuple[str, ...]) -> None:
    asked = f"import sys; {code}; print([name for name in {without} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", asked], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_wrappers_are_there_without_an_import_of_their_own() -> None:
    code = "import deeprm; print(deeprm.wrappers.MaskInObservation.__name__, 'evaluate' in dir(deeprm))"
    found = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["MaskInObservation", "True"]
