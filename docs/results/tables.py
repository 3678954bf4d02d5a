"""Write the tables of the README and of the results pages from data in the repository.

    python docs/results/tables.py write [PAGE ...]    # between their markers; default: all pages
    python docs/results/tables.py confirm             # run first after a new default run: see default/page.py

Each page has a folder with its data and a `page.py`, whose TABLES map titles to functions that write the tables.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]  # pages also import benchmarks
from layout import filled  # noqa: E402  in this folder, which need not be the current one

PAGES = {
    "README.md": "readme",
    "docs/results/situations.md": "situations",
    "docs/results/default.md": "default",
    "docs/results/what-learning-is-worth.md": "worth",
    "docs/results/deeprm3.md": "deeprm3",
    "docs/results/rlscheduler.md": "rlscheduler",
    "docs/results/paper-scale.md": "paper-scale",
    "docs/results/controller.md": "controller",
    "docs/results/deepk8s.md": "deepk8s",
    "docs/results/lookahead.md": "lookahead",
    "docs/results/expert-iteration.md": "expert-iteration",
    "docs/results/fidelity.md": "fidelity",
    "docs/results/slurm-day.md": "slurm-day",
    "docs/results/steering.md": "steering",
    "docs/results/gate.md": "gate",
    "docs/results/coverage.md": "intervals",
    "docs/results/mutants.md": "mutants",
    "docs/results/streams.md": "streams",
    "docs/results/run-times.md": "run-times",
    "docs/results/serving.md": "serving",
    "docs/results/speed.md": "speed",
    "docs/scale.md": "scale",
}


def page(folder: str) -> ModuleType:
    """Return the module that writes a page's tables."""
    name = f"page_{folder.replace('-', '_')}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / folder / "page.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"{folder}/page.py cannot be loaded")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def written(path: str) -> str:
    """Return the text of a page with its tables computed from the data."""
    tables = {title: write() for title, write in page(PAGES[path]).TABLES.items()}
    return filled((ROOT / path).read_text(encoding="utf-8"), tables)


if __name__ == "__main__":
    if sys.argv[1:] == ["gather"]:
        page("default").gather()
    elif sys.argv[1:] == ["confirm"]:
        page("default").confirm_all()
    elif sys.argv[1:2] == ["write"] and set(sys.argv[2:]) <= set(PAGES):
        for path in sys.argv[2:] or PAGES:
            (ROOT / path).write_text(written(path), encoding="utf-8")
    else:
        sys.exit(f"expected confirm, gather, or write [PAGE ...]; pages: {', '.join(PAGES)}")
