"""Lines of logs in the Standard Workload Format, and real logs if there are any next to the project."""

from pathlib import Path

import pytest

from pipeline.core.logs import swf
from pipeline.core.logs.trace import Trace

TRACES = Path(__file__).parents[3] / "shared" / "traces"
HPC2N = TRACES / "HPC2N-2002-2.2-cln.first15000.swf.gz"
LUBLIN = TRACES / "lublin_256.swf.gz"
CASES = Path(__file__).parents[1] / "core" / "logs" / "cases"  # reported problems, reduced to a minimum
GIB_KB = 1024**2


def there(path: Path) -> Path:
    """Return a real log, or skip."""
    if not path.exists():
        pytest.skip(f"the trace files stand beside the project, and {path} is not there")
    return path


def line(
    id: float = 1,
    *,
    submit: float = 0,
    wait: float = 0,
    run: float | str = 10,
    allocated: float | str = 1,
    used_kb: float = -1,
    requested: float = -1,
    estimate: float = -1,
    requested_kb: float = -1,
    user: float = -1,
    status: int = 1,
    partition: int = -1,
) -> str:
    kb = requested_kb
    fields = [id, submit, wait, run, allocated, -1, used_kb, requested, estimate, kb, status, user]
    fields += [-1, -1, -1, partition, -1, -1]
    return " ".join(str(field) for field in fields)


def read(folder: Path, *lines: str, per_node: bool = False) -> Trace:
    path = folder / "log.swf"
    path.write_text("\n".join(lines) + "\n")
    return swf.read(path, per_node=per_node)
