"""The doors: POST /v1/decide or /v1/shares, GET /v1/health, /v1/policy, /metrics, /openapi.json and a page, /."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json

from pipeline.config.records import first_error
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.serving.desk import BusyError, Desk
from pipeline.serving.guard import Guard, Size, refusal
from pipeline.serving.measured import Measured
from pipeline.serving.named import Health, Mistake, Reply, Standing
from pipeline.serving.page import SAFE, page

MOST_BYTES, MOST_VALUES = 4_000_000, 250_000  # of a state
LATE_S = 15.0  # without a look at who is champion that succeeded
MOST_MISTAKES = 100  # of a state, that are looked at
REF = "#/components/schemas/{model}"


def application(
    desk: Desk,
    found: Measured,
    token: str | None,
    more: Sequence[APIRouter] = (),
    verdict: Callable[[], tuple[str, ...]] = tuple,
) -> FastAPI:
    """Return the service of a desk: with a token if there is one, more endpoints, and shadow's verdict for the page."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(desk.watch())
        yield
        watching.cancel()
        desk.close()

    app = FastAPI(title="Decisions for a live cluster", version="1", lifespan=life, docs_url=None, redoc_url=None)
    _decisions(app, desk, found)

    @app.get("/v1/health")
    async def health() -> Health:
        """Is the service there? It always decides; `status` says whether by its policy, and the newest."""
        now = desk.standing
        status = "falling back" if not now.ready else "ok" if now.looked_s < LATE_S else "not following"
        return Health(status=status, policy_ready=now.ready)

    @app.get("/v1/policy")
    async def policy() -> Standing:
        """Which policy decides, and is it the newest?"""
        return desk.standing

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counters, for Prometheus."""
        return Response(found.told(desk.standing.ready, desk.standing.looked_s), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def look() -> Response:
        desk.shown.verdict = await asyncio.to_thread(verdict)
        return Response(page(desk.standing, desk.shown), media_type="text/html; charset=utf-8", headers=SAFE)

    for door in more:
        app.include_router(door)
    app.add_middleware(Guard, token=token, found=found, state=Size(MOST_BYTES, MOST_VALUES))
    return app


def _decisions(app: FastAPI, desk: Desk, found: Measured) -> None:
    live = desk.live
    told: dict[str, object] = {"schema": {"$ref": REF.format(model=live.state.__name__)}, "example": desk.example}

    async def decide(request: Request) -> Response:
        raw = await request.body()
        try:
            return Response(await desk.answer(raw), media_type="application/json")
        except ValidationError as error:
            return refusal(found, 422, await asyncio.to_thread(_problem, error, raw))
        except BusyError as busy:
            return refusal(found, 503, str(busy))
        except UserError as error:
            return refusal(found, 422, f"state: {error}")

    app.add_api_route(
        f"/v1/{live.door}",
        decide,
        methods=["POST"],
        summary="What does the policy want, with the cluster as it is?",
        responses={
            200: {"model": Reply},
            **{status: {"model": Mistake} for status in (401, 403, 408, 413, 415, 422, 503)},
        },
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": told}}},
    )
    _with_schemas(app, live.state, live.decision)


def _with_schemas(app: FastAPI, *models: type[BaseModel]) -> None:
    """Have OpenAPI tell what a state and a decision are."""
    plain = app.openapi

    def told() -> dict[str, object]:
        if app.openapi_schema is None:
            document = plain()
            _, found = models_json_schema([(model, "validation") for model in models], ref_template=REF)
            document["components"]["schemas"] |= found["$defs"]
            decided = document["components"]["schemas"]["Reply"]["properties"]
            decided["decision"] = {"$ref": REF.format(model=models[1].__name__)}
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = told  # type: ignore[method-assign]


def _problem(error: ValidationError, raw: bytes) -> str:
    """Return the first mistake of a state in one line, with the key as it was sent."""
    if error.error_count() > MOST_MISTAKES:  # sequences stop at their first: keys are all that is left
        return f"state: {error.error_count()} keys that are not known or missing"
    try:
        found: Json = from_json(raw)
    except ValueError:
        found = None
    return first_error(error, found, "state")
