"""The deciding policy: the scenario's champion, a heuristic as tuned, or a model."""

from pathlib import Path

import pytest

from pipeline.champions.lines import Champion, digest_of_tuned, with_line
from pipeline.core.config import Params
from pipeline.errors import UserError
from pipeline.problems import PROBLEMS
from pipeline.stages.serve import by_name, looking, run


def test_the_champion_is_looked_up_anew(params: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = tmp_path / "champions.yaml"

    def seat(policy: str, **tuned: float) -> None:
        line = Champion(policy=policy, digest=digest_of_tuned(policy, tuned), tuned=tuned, verdict="told")
        lines.write_text(with_line("# kept\n", "machines", line))

    seat("sjf")
    with looking(params, "machines", "champion") as look:
        assert (look().policy, look().place) == ("sjf", "sjf")
        seat("tetris", tetris_packing=0.5, tetris_fairness=0.1)
        assert look().tuned == {"tetris_packing": 0.5, "tetris_fairness": 0.1}
        assert look().digest == digest_of_tuned("tetris", look().tuned)
        lines.write_text("# nobody\n")
        with pytest.raises(UserError, match="scenario 'machines' has no champion"):
            look()


def test_a_model_is_another_when_its_folder_changes(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text("1")
    first = by_name(str(tmp_path), "machines")
    (tmp_path / "card.json").write_text("2")
    assert by_name(str(tmp_path), "machines").digest != first.digest
    assert first.place == str(tmp_path)


def test_a_problem_that_is_not_served_is_one_line(params: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PROBLEMS["pool"], "live")  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"^problem pool: 'live' is not available$"):
        run(params, "online", "sjf", 200.0, port=0)


def test_an_unknown_policy_is_one_line(params: Params) -> None:
    with pytest.raises(UserError, match="unknown policy 'sjff'"):
        run(params, "machines", "sjff", 200.0, port=0)


def test_kubernetes_is_answered_by_policies_that_place_jobs_on_machines(params: Params) -> None:
    with pytest.raises(UserError, match="--kubernetes: policies of scenario 'online' do not place jobs on machines"):
        run(params, "online", "sjf", 200.0, port=0, kubernetes="cluster")


@pytest.mark.parametrize("text", ["\n", "two lines of\nsome length\n", "ünguessable-and-long", "x" * 5000])
def test_a_token_that_is_none_is_one_line(params: Params, tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(UserError, match=r"token: expected (one line of at least 16|at most 4096)"):
        run(params, "machines", "sjf", 200.0, port=0, token_file=tmp_path / "token")


def test_a_token_file_without_end_is_not_read_to_its_end(params: Params) -> None:
    with pytest.raises(UserError, match="/dev/zero: expected at most 4096 characters"):
        run(params, "machines", "sjf", 200.0, port=0, token_file=Path("/dev/zero"))


def test_a_token_that_others_may_read_is_pointed_out(
    params: Params, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length")
    for mode, pointed_out in ((0o644, True), (0o600, False)):
        token.chmod(mode)
        with pytest.raises(UserError, match="unknown policy"):
            run(params, "machines", "sjff", 200.0, port=0, token_file=token)
        assert ("other users of this machine may read it" in capsys.readouterr().err) == pointed_out


@pytest.mark.parametrize("scenario", ["machines", "shares"])
def test_looking_ahead_where_it_is_not_served_is_refused_with_the_reason(params: Params, scenario: str) -> None:
    said = r"^plan_sjf: policies with look-ahead are not served in scenarios of this problem"
    with pytest.raises(UserError, match=said), looking(params, scenario, "plan_sjf"):
        pass
