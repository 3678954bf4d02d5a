"""Every part of every claim of the papers, on evidence by which it is refuted, holds, and is undecided."""

import deepk8s_evidence
import papers_evidence
import pytest
from papers_cases import cases, lacking
from papers_evidence import HEURISTICS, LENGTHS, rising

from pipeline.core.schemas.tables import CURVE
from pipeline.papers.figures import ALL
from pipeline.papers.rules import NO, UNDECIDED, YES
from pipeline.papers.verdicts import Claim, Finding, Part, judged
from pipeline.problems.machines.env.tables import TABLES
from pipeline.problems.pool.env.tables import JOB_RESULTS, JOBSET_RESULTS

PARTS = [(claim, part) for claim in ALL for part in claim.parts]


@pytest.mark.parametrize("word", [NO, YES, UNDECIDED])
@pytest.mark.parametrize(("claim", "part"), PARTS, ids=[f"{claim.text}: {part.text}" for claim, part in PARTS])
def test_every_part_can_be_refuted_can_hold_and_can_be_open(claim: Claim, part: Part, word: str) -> None:
    has = cases(claim)
    assert lacking([claim]) == []
    made, agent = has.get(part.text, has.get("", {}))[word]()
    ((*_, found),) = judged([claim._replace(parts=(part,))], made, agent)
    assert found.word == word, found.found


def test_a_new_part_without_a_refuting_case_is_found() -> None:
    claim = next(claim for claim in ALL if len(claim.parts) > 1)
    more = Part("something new", "it is not so", lambda evidence, agent: Finding("it is so", YES))
    assert lacking(ALL) == []
    assert lacking([claim._replace(parts=(*claim.parts, more))]) == [f"{claim.text}: something new"]
    assert lacking([Claim("DeepRM, Figure 9", "Something else", (more,))]) == ["Something else: something new"]


def test_every_part_states_what_refutes_it() -> None:
    assert [part.text for _, part in PARTS if not part.no_if.strip()] == []


def test_made_tables_are_like_those_of_the_pipeline() -> None:
    means = {policy: {70: of, 130: of} for policy, of in HEURISTICS.items()}
    JOBSET_RESULTS.validate(papers_evidence.jobset_table(means, {}, {"sjf": 0.2}))
    JOB_RESULTS.validate(papers_evidence.job_table(["sjf"], [70], {"sjf": dict.fromkeys(LENGTHS, (2.0, 1))}))
    slowdown, completion = deepk8s_evidence.SLOWDOWN, deepk8s_evidence.COMPLETION
    TABLES.jobsets.validate(deepk8s_evidence.jobset_table(slowdown, completion, {}))
    TABLES.jobs.validate(deepk8s_evidence.job_table(deepk8s_evidence.TASKS))
    assert not CURVE.validate(rising()).empty
