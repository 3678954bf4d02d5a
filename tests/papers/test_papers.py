"""Every part of every claim of the papers, on evidence by which it is refuted, holds, and is undecided."""

import pytest
from papers_cases import cases, lacking

from pipeline.papers.figures import ALL
from pipeline.papers.rules import NO, UNDECIDED, YES
from pipeline.papers.verdicts import Claim, Finding, Part, judged

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
