"""Endpoints: POST /v1/decide or /v1/shares, GET /v1/health, /v1/policy, /metrics, /openapi.json and a page, /.

All text from outside is escaped and cut on the page, and its headers forbid a browser to load or run anything.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache

from fastapi import APIRouter, FastAPI, Request, Response
from jinja2 import Environment, PackageLoader, Template
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json

from pipeline.core.config.records import first_error
from pipeline.core.types import Json
from pipeline.errors import UserError
from pipeline.serving.gateway import BusyError, PolicyGateway
from pipeline.serving.guard import Guard, refusal
from pipeline.serving.records import ActivePolicy, Health, Metrics, Mistake, RecentDecisions, Reply

LATE_S = 15.0  # since the last successful look for a new champion
MOST_MISTAKES = 100  # of a state, that are examined
REF = "#/components/schemas/{model}"
MOST_ROWS, LONGEST = 50, 120  # of a table; characters of a cell
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def application(
    gateway: PolicyGateway,
    metrics: Metrics,
    token: str | None,
    more: Sequence[APIRouter] = (),
    verdict: Callable[[], tuple[str, ...]] = tuple,
) -> FastAPI:
    """Return the web application of a gateway; `verdict` returns the lines of mode shadow for its page."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(gateway.watch())
        yield
        watching.cancel()
        gateway.close()

    app = FastAPI(title="Decisions for a live cluster", version="1", lifespan=life, docs_url=None, redoc_url=None)
    _add_decisions(app, gateway, metrics)

    @app.get("/v1/health")
    async def health() -> Health:
        """Is the service there? It always decides; `status` says whether by its policy, and whether by the newest."""
        now = gateway.active
        status = "falling back" if not now.ready else "ok" if now.looked_s < LATE_S else "not following"
        return Health(status=status, policy_ready=now.ready)

    @app.get("/v1/policy")
    async def policy() -> ActivePolicy:
        """Which policy decides, and is it the newest?"""
        return gateway.active

    @app.get("/metrics", name="metrics")
    async def show_metrics() -> Response:
        """Counters, for Prometheus."""
        now = gateway.active
        return Response(metrics.text(now.ready, now.looked_s), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def look() -> Response:
        gateway.recent.verdict = await asyncio.to_thread(verdict)
        return Response(page(gateway.active, gateway.recent), media_type="text/html; charset=utf-8", headers=SAFE)

    for router in more:
        app.include_router(router)
    app.add_middleware(Guard, token=token, metrics=metrics)
    return app


def _add_decisions(app: FastAPI, gateway: PolicyGateway, metrics: Metrics) -> None:
    live = gateway.live
    content = {"schema": {"$ref": REF.format(model=live.state.__name__)}, "example": gateway.example}

    async def decide(request: Request) -> Response:
        raw = await request.body()
        try:
            return Response(await gateway.answer(raw), media_type="application/json")
        except ValidationError as error:
            return refusal(metrics, 422, await asyncio.to_thread(_problem, error, raw))
        except BusyError as busy:
            return refusal(metrics, 503, str(busy))
        except UserError as error:
            return refusal(metrics, 422, f"state: {error}")

    app.add_api_route(
        f"/v1/{live.door}",
        decide,
        methods=["POST"],
        summary="What does the policy want in the present state of the cluster?",
        responses={
            200: {"model": Reply},
            **{status: {"model": Mistake} for status in (401, 403, 408, 413, 415, 422, 503)},
        },
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": content}}},
    )
    plain = app.openapi

    def with_schemas() -> dict[str, object]:
        if app.openapi_schema is None:
            document = plain()
            models: list[type[BaseModel]] = [live.state, live.decision]
            _, found = models_json_schema([(model, "validation") for model in models], ref_template=REF)
            schemas = document["components"]["schemas"]
            schemas |= found["$defs"]
            schemas["Reply"]["properties"]["decision"] = {"$ref": REF.format(model=live.decision.__name__)}
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = with_schemas  # type: ignore[method-assign]


def _problem(error: ValidationError, raw: bytes) -> str:
    """Return the first mistake of a state as one line, with the key that was sent."""
    if error.error_count() > MOST_MISTAKES:  # sequences stop at their first mistake, so these are keys
        return f"state: {error.error_count()} keys that are not known or missing"
    try:
        found: Json = from_json(raw)
    except ValueError:
        found = None
    return first_error(error, found, "state")


def page(active: ActivePolicy, recent: RecentDecisions) -> str:
    """Return the page as HTML."""
    state, reply = (None if raw is None else from_json(raw) for raw in (recent.state, recent.reply))
    return _template().render(active=active, recent=recent, state=state, reply=reply, most=MOST_ROWS).lstrip()


def _text(value: Json) -> str:
    """Return a value as text on one line, cut to the length of a cell."""
    if isinstance(value, float):
        said = f"{value:.6g}"
    elif isinstance(value, Mapping):
        said = ", ".join(f"{name} {one}" for name, one in value.items())
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        said = ", ".join(value)
    elif isinstance(value, str):
        said = value
    elif value is None:
        said = ""
    else:
        said = json.dumps(value, ensure_ascii=False)
    plain = " ".join("".join(c if c.isprintable() else " " for c in said).split())
    return plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


@cache
def _template() -> Template:
    loader = PackageLoader("pipeline.serving")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.tests["list"] = lambda value: isinstance(value, list)
    filters: dict[str, Callable[..., object]] = {
        "text": _text,
        "clock": _clock,
        "mappings": lambda rows: [one if isinstance(one, Mapping) else {"": one} for one in rows],
        "heads": lambda rows: list(dict.fromkeys(name for row in rows for name in row)),
        "fallbacks": lambda whys: [{"when": _clock(at), "why": why} for at, why in reversed(whys)],
    }
    environment.filters |= filters
    return environment.get_template("page.html")
