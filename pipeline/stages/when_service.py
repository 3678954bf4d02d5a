"""`when --serve`: a page and JSON with the expected start of each waiting job of a site, renewed if its log changes."""

import re
from threading import Lock

from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse

from pipeline.core import storage
from pipeline.core.config import PARAMS_FILE, check_known, load_params
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.progress import say
from pipeline.report import template
from pipeline.report.advice import duration
from pipeline.serving.guard import bound, server_of
from pipeline.stages.when import NoJobWaitsError, run

HOST = "127.0.0.1"  # users of other machines come through the site's own web server


class Latest:
    """The answer for a site at the end of its log."""

    def __init__(self, site: str) -> None:
        self.site, self._one_at_a_time = site, Lock()
        self._found: dict[str, Json] = {}
        self._changed_at: list[float] = []  # modification times of the answer's files

    def rows(self, job: int | None) -> dict[str, Json]:
        """Return the answer for one waiting job, or for all; an HTTPException if that job does not wait."""
        with self._one_at_a_time:
            try:
                if (changed := self._changed()) != self._changed_at:
                    self._found, self._changed_at = self._answered(), changed
            except UserError as error:
                raise HTTPException(503, str(error)) from error
        found = self._found
        jobs: list[dict[str, Json]] = found["jobs"]  # type: ignore[assignment]
        some = [row for row in jobs if job in (None, row["job"])]
        if job is not None and not some:
            raise HTTPException(404, f"{self.site}: job {job} does not wait at the end of the log")
        return found | {"jobs": some}

    def _answered(self) -> dict[str, Json]:
        try:
            return run(load_params(), self.site, [], None)
        except NoJobWaitsError:
            return {"site": self.site, "calibrated": True, "own_waits": True, "jobs": []}

    def _changed(self) -> list[float]:
        log = storage.scenario_log(self.site)
        try:
            files = [PARAMS_FILE, *(sorted(log.iterdir()) if log.is_dir() else [log])]
            return [place.stat().st_mtime for place in files]
        except OSError as error:
            raise UserError(f"{error.filename}: cannot be read ({error.strerror})") from error


def application(latest: Latest) -> FastAPI:
    """Return the service: `/` is the page, `/when.json` the same in seconds; `?job=` selects one."""
    app = FastAPI(title=f"When do jobs of {latest.site} start?", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/when.json", response_model=None)
    def answer(job: str = "") -> dict[str, Json]:
        return latest.rows(number(job))

    @app.get("/", response_class=HTMLResponse)
    def page(job: str = "") -> str:
        return template("when.html").render(it=latest.rows(number(job)), duration=duration, job=number(job))

    return app


def number(job: str) -> int | None:
    """Return the number of a job; None for an empty field, an HTTPException for another text."""
    if not re.fullmatch(r"\d{0,18}", job.strip()):
        raise HTTPException(422, f"job: expected a number, got '{job[:40]}'")
    return int(job) if job.strip() else None


def serve(site: str, port: int) -> None:
    """Answer requests until a signal arrives; the first answer takes as long as `when`."""
    check_known("params.yaml", "sites", site, load_params().sites)
    latest = Latest(site)
    with bound(HOST, port) as where:
        say(f"when: {site}: http://{HOST}:{where.getsockname()[1]}/ and /when.json?job=NUMBER")
        server = server_of(application(latest))
        server.config.lifespan = "off"  # a signal would end it with a traceback
        server.run(sockets=[where])
