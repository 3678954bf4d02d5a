"""`show`: one jobset under two policies, side by side, as a picture."""

from collections.abc import Sequence
from pathlib import Path

from pipeline import storage
from pipeline.config import Params
from pipeline.problems import problem_of
from pipeline.progress import say
from pipeline.showing.show import ShowRequest, draw
from pipeline.storage.files import check_out


def run(params: Params, asked: ShowRequest, policies: Sequence[str], out: Path) -> None:
    """Write the picture of a jobset under some policies."""
    check_out(out, [".png"])
    picture = draw(problem_of(params, asked.scenario).show, params, asked, policies)
    storage.write(out, picture.content)
    say(f"{out}: {picture.title}")
    for half in picture.halves:
        say(f"  {half.replace(chr(10), ', ')}")
