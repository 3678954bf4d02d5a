"""The benchmark: it measures the same work on both sides, writes what it reports, and ends as it should."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from builders import REPOSITORY

from benchmarks import engine, lookahead, lookahead_machines, running
from benchmarks.__main__ import main
from benchmarks.described import described
from benchmarks.measure import exponent
from benchmarks.names import NAMES
from benchmarks.problem import DEEPRM, Problem
from benchmarks.record import Figure, Row, Target, figure, half_of, read_figures, slower, write_figures
from benchmarks.search import list_one_by_one, list_plainly, question, swapped
from benchmarks.simulation import plain_sjf
from benchmarks.sizes import CROWD, FULL, QUICK
from pipeline.errors import UserError
from pipeline.problems.machines.lookahead.plans import LEARNED as ASKED
from pipeline.problems.machines.lookahead.plans import USUAL
from pipeline.problems.pool.agents.training.reinforce import reinforce
from pipeline.problems.pool.lookahead.naming import WHOLE
from tests.oracles.pool import Timestep

SMALL = Problem(jobsets=2, episodes=3, steps=8)
KEYS = ["name", "value", "unit", "min", "max", "baseline", "ratio", "target", "holds"]


def test_the_described_path_has_the_gradient_of_the_engine() -> None:
    task, config = SMALL.task(), engine.budget(SMALL, 1)
    ours, theirs = engine.network(SMALL, DEEPRM), engine.dense(SMALL)
    decisions = next(reinforce(ours, task, config)).metrics["decisions"]
    assert next(described(theirs, task, config)) == decisions
    described_by_name = dict(theirs.named_parameters())
    for name, weight in ours.named_parameters():
        mine, other = weight.grad, described_by_name[name].grad
        assert mine is not None
        assert other is not None
        assert float((mine - other).norm()) <= 1e-4 * float(other.norm()) > 0, name


def test_the_network_has_the_papers_size() -> None:
    assert sum(weight.numel() for weight in engine.network(FULL.iteration, DEEPRM).parameters()) == 89_451


def test_plain_and_compiled_sjf_take_the_same_decisions() -> None:
    problem = Problem(jobsets=3, steps=10)
    jobsets = problem.draw()
    plain = sum(plain_sjf(Timestep(jobs, problem.cluster, problem.step_limit)) for jobs in jobsets)
    assert engine.lock_step(problem, jobsets)() == plain
    assert engine.whole_episodes(problem, jobsets)() == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "said", "bases"),
    [
        (lookahead, "looking ahead", {"hold": WHOLE.decisions}),
        (lookahead_machines, "looking ahead on machines", {"saf": USUAL.decisions, "deepsets": ASKED.decisions}),
    ],
)
def test_looking_ahead_is_a_curve_of_bases_and_their_limits(
    module: ModuleType, said: str, bases: dict[str, int]
) -> None:
    rows = [one.figure for one in module.run(1, QUICK, lambda what: None)]
    assert len(rows) == 6 * len(bases)
    for name, last in bases.items():
        mine = [one for one in rows if f", {name}," in one.name]
        means, spent = mine[::2], mine[1::2]
        assert [one.unit for one in mine] == ["", "ms"] * 3
        assert len({one.baseline for one in means}) == 1
        assert min(one.value for one in means) >= 1.0
        assert min(one.value for one in spent) > 0.0
        assert [one.target for one in spent] == [None, None, "<= 50 ms"]
        assert spent[-1].name == f"{said}, {name}, {last:,} decisions: p99 where 64 jobs wait"


def test_orders_are_listed_alike_in_numpy_and_compiled() -> None:
    asked = question(1, 12)
    orders = swapped(asked.first, 20)
    assert ((orders != asked.first).sum(axis=1) == 2).all()
    for one, other in zip(list_plainly(asked, orders), list_one_by_one(asked, orders), strict=True):
        assert np.array_equal(one, other)


def test_more_resources_of_a_crowd_change_no_schedule() -> None:
    two, four = (Problem(**(CROWD | {"resources": count, "jobsets": 2})) for count in (2, 4))  # type: ignore[arg-type]
    assert engine.lock_step(two, two.draw())() == engine.lock_step(four, four.draw())()


def test_an_axis_differs_in_one_quantity() -> None:
    for axis in FULL.axes:
        assert [getattr(problem, axis.name) for problem in axis.problems] == list(axis.sizes)
        same = {tuple((k, v) for k, v in vars(problem).items() if k != axis.name) for problem in axis.problems}
        assert len(same) == 1


def test_the_exponent_of_a_power_law_is_its_power() -> None:
    sizes = [10, 20, 40, 128]
    assert exponent(sizes, [3 * size**1.5 for size in sizes]) == pytest.approx(1.5)


def test_the_high_water_mark_rises_with_what_is_held() -> None:
    """A separate process, because this one may have held more memory before."""
    lines = [
        "import numpy as np",
        "from benchmarks.measure import high_water",
        "before = high_water()",
        "held = np.ones(300 * 2**20, dtype=np.uint8)",
        "print(high_water() - before)",
    ]
    said = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    assert int(said.stdout) >= 150 * 2**20


def test_a_figure_is_the_median_of_its_runs() -> None:
    one = figure("time", [3.0, 1.0, 2.0], "s", baseline=[30.0, 40.0, 20.0], target=Target(most=2.5, ratio=20))
    assert one.model_dump() == {
        "name": "time",
        "value": 2.0,
        "unit": "s",
        "min": 1.0,
        "max": 3.0,
        "baseline": 30.0,
        "ratio": 15.0,
        "target": "<= 2.5 s, >= 20 x",
        "holds": False,
    }
    rate = figure("rate", [6.0], "M/s", baseline=[2.0], more_is_better=True, target=Target(least=6, ratio=3))
    assert (rate.ratio, rate.holds) == (3.0, True)
    assert figure("time", [1.0], "s").holds is None


@pytest.mark.parametrize("slower", [1, 10])
def test_a_tenfold_slowdown_misses_half_of_what_was_measured(slower: int) -> None:
    rate = figure("rate", [6 / slower], "M/s", [2.0], more_is_better=True, target=half_of(ratio=3))
    time = figure("time", [0.5 * slower], "s", [7.9], target=half_of(ratio=15.8))
    alone = figure("alone", [0.3 * slower], "ms", target=half_of(cost=0.3))
    assert [one.holds for one in (rate, time, alone)] == [slower == 1] * 3


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    figures = [figure("a", [1.0], "s", [2.0]), figure("b", [0.5], "exponent", target=Target(most=1.1))]
    write_figures(tmp_path / "bench.json", figures)
    assert [list(row) for row in json.loads((tmp_path / "bench.json").read_text())] == [KEYS, KEYS]
    assert read_figures(tmp_path / "bench.json") == figures


def test_a_report_with_another_key_is_refused(tmp_path: Path) -> None:
    row = figure("a", [1.0], "s").model_dump() | {"machine": "mine"}
    (tmp_path / "bench.json").write_text(json.dumps([row]))
    with pytest.raises(UserError, match="not a report of the benchmark"):
        read_figures(tmp_path / "bench.json")


def test_every_name_is_measured() -> None:
    assert list(running.BENCHES) == list(NAMES)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measurements that take no time; `growth` misses its target."""

    def bench(name: str, value: float) -> running.Bench:
        def measure(*_: object) -> Iterator[Row]:
            yield Row(figure(name, [value], "s", target=Target(most=1.0)), "nothing")

        return measure

    monkeypatch.setattr(running, "BENCHES", {name: bench(name, 2.0 if name == "growth" else 0.5) for name in NAMES})
    monkeypatch.setattr(running, "measured", lambda *_, **__: [])
    monkeypatch.setattr(running, "hold_to", lambda threads: None)
    monkeypatch.chdir(REPOSITORY)


@pytest.mark.usefixtures("fakes")
def test_only_what_is_asked_for_is_measured(tmp_path: Path) -> None:
    assert main(["--only", "growth", "cnn", "--out", str(tmp_path / "bench.json")]) == 0
    assert [one.name for one in read_figures(tmp_path / "bench.json")] == ["cnn", "growth"]


@pytest.mark.usefixtures("fakes")
def test_a_target_that_is_missed_is_said_and_with_strict_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "bench.json")]
    assert main(out) == 0
    assert "NOT reached (1 of 15): growth" in capsys.readouterr().err
    assert main([*out, "--strict"]) == 1
    assert main([*out, "--strict", "--only", "cnn"]) == 0
    assert "all targets hold" in capsys.readouterr().err
    assert main([*out, "--strict", "--only", "cnn", "--slower", "10"]) == 1
    said = capsys.readouterr().err
    assert "as if ours were 10 times slower" in said
    assert "NOT reached (1 of 1): cnn" in said
    assert read_figures(tmp_path / "bench.json")[0].value == 5.0


@pytest.mark.usefixtures("fakes")
def test_what_was_measured_is_kept_when_something_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Iterator[Row]:
        raise UserError("executor: another version of the code")
        yield

    monkeypatch.setitem(running.BENCHES, "executor", broken)
    assert main(["--out", str(tmp_path / "bench.json")]) == 2
    assert [one.name for one in read_figures(tmp_path / "bench.json")] == list(NAMES)[: list(NAMES).index("executor")]
    said = capsys.readouterr().err
    assert "executor could not be measured; later measurements were skipped" in said
    assert said.splitlines()[-1] == "error: executor: another version of the code"
    (tmp_path / "bench.json").unlink()
    assert main(["--only", "executor", "growth", "--out", str(tmp_path / "bench.json")]) == 2
    assert not (tmp_path / "bench.json").exists()


def test_a_name_that_there_is_not_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--only", "speed"])
    assert ended.value.code == 2
    assert "speed" in capsys.readouterr().err


@pytest.mark.parametrize("unit", ["exponent", "%", "GiB"])
def test_a_slowdown_leaves_what_is_no_speed(unit: str) -> None:
    one = figure("growth", [1.0], unit, target=Target(most=1.1))
    assert slower(one, 10) == one


def test_a_slower_rate_is_a_smaller_one() -> None:
    slow = slower(figure("rate", [6.0], "M/s", [2.0], more_is_better=True, target=Target(least=1, ratio=1.5)), 10)
    assert slow.value == pytest.approx(0.6)
    assert slow.ratio == pytest.approx(0.3)
    assert slow.holds is False


def test_no_slowdown_at_all_ends_with_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--slower", "0"]) == 2
    assert capsys.readouterr().err == "error: --slower: expected more than 0, got 0\n"


def test_no_runs_end_with_2_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--runs", "0"]) == 2
    assert capsys.readouterr().err == "error: --runs: expected at least 1, got 0\n"


@pytest.mark.slow
def test_everything_is_measured_and_written(tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "bench.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--runs", "1", "--out", str(out)],
        cwd=REPOSITORY,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    written: list[Figure] = read_figures(out)
    assert all(one.name in done.stdout for one in written)
    assert sum(one.name.startswith("looking ahead") for one in written) == 18
    engines = {one.name.split(":")[0] for one in written if one.name.startswith("executor")}
    assert "executor, processes" in engines
    assert sum(one.name.startswith("executor") for one in written) == 4 * len(engines)  # Ray and Slurm if installed
    figures = [one for one in written if not one.name.startswith(("executor", "looking ahead"))]
    assert len(figures) == 29
    assert all(one.min <= one.value <= one.max for one in figures)
    # Without a target: worst gaps, which are no speeds, and decisions of a network whose ratio was not measured.
    free = [one.name.split(",")[0] for one in figures if one.target is None]
    assert free == ["a decision of deeprm2"] * 2 + ["gap to optimum", "gap to bound"]
    alone = [one.name for one in figures if one.baseline is None and one.unit not in ("exponent", "%")]
    assert alone == [
        "knapsack, 3 x 3 x 10 x 10 units",
        "relaxation, 4 x 3 x 2 resources of 20",
        "sharing, a decision for 4 groups",
    ]
    assert all(one.baseline is None for one in figures if one.unit in ("exponent", "%"))
