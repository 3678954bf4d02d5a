"""Launch of a command where the user's setting says, several times at once if it is a worker."""

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from pipeline.execution.commands import Commands, Job, LineCallback, is_failure, nothing
from pipeline.execution.on_ray import driver, understood
from pipeline.execution.on_slurm import SlurmJobs
from pipeline.execution.setting import LOOKED_S, Setting


def launch(
    place: Setting, job: Job, copies: int, on_line: LineCallback, on_look: Callable[[], None] = nothing
) -> list[int]:
    """Run copies of a command; return the exit codes of those that ended, up to the first failure.

    A code below 0 or above 128 means that the command was killed. Ray runs as many copies as it has cores, and they
    have one code, the highest. `on_line` is called with each line of their output, `on_look` every second. Raises
    UserError: Slurm cannot be reached.
    """
    codes = list[int]()
    with ThreadPoolExecutor(copies) as pool, Commands() as commands:
        runs: list[Callable[[], int]]
        if place.backend == "ray":
            words = driver(place, job, copies)
            runs = [partial(commands.run, words, lambda line: on_line(understood(line, place.address)), job.given)]
        elif place.backend == "slurm":
            jobs = SlurmJobs(place, job, commands, on_line)
            runs = [partial(jobs.run, copy) for copy in range(copies)]
        else:
            runs = [partial(commands.run, job.command(copy), on_line, job.given) for copy in range(copies)]
        left: set[Future[int]] = {pool.submit(run) for run in runs}
        while left and not any(is_failure(code) for code in codes):
            done, left = wait(left, LOOKED_S, FIRST_COMPLETED)
            codes += [future.result() for future in done]
            on_look()
    return codes
