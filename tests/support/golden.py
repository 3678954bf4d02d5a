"""Golden schedules of the original DeepRM: all of them if they are next to the project, else those kept here."""

from builders import REPOSITORY

WHOLE, PART = REPOSITORY.parent / "shared" / "reference" / "deeprm", REPOSITORY / "tests" / "data" / "deeprm"
GOLDEN, JOBSETS = (WHOLE, 100) if WHOLE.is_dir() else (PART, 20)  # jobsets of each workload and rate
