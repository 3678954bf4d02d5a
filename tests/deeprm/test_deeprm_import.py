import subprocess
import sys

from builders import REPOSITORY

HEAVY = {"torch", "mlflow", "dvc", "pandas", "numba", "matplotlib"}
NEEDED = {"pandas", "numba"}  # needed by an episode
ASKED = f"""
import sys
import deeprm
print(*{HEAVY} & set(sys.modules))
print(deeprm.wrappers.MaskInObservation.__name__, "evaluate" in dir(deeprm))
env = deeprm.make("deeprm/Pool-v0")
env.reset(seed=1)
env.step(0)
print(*{HEAVY - NEEDED} & set(sys.modules))
"""


def test_import_and_episode_load_only_what_they_need_and_wrappers_are_there() -> None:
    said = subprocess.run([sys.executable, "-c", ASKED], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    imported, wrappers, played = said.stdout.splitlines()
    assert (imported, played) == ("", "")
    assert wrappers == "MaskInObservation True"
