"""The doors: POST /v1/decide or /v1/shares, GET /v1/health, /v1/policy, /metrics, /openapi.json and a page, /."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pipeline.config.records import first_problem
from pipeline.core import Json
from pipeline.errors import UserError
from pipeline.serving.desk import Desk
from pipeline.serving.listening import is_loopback
from pipeline.serving.measured import Measured
from pipeline.serving.named import Health, Mistake, Reply, Standing
from pipeline.serving.page import SAFE, page

MOST_BYTES = 4_000_000  # of a state
REF = "#/components/schemas/{model}"
FREE = ("/v1/health",)  # asked without a token: it says nothing of jobs or policies


class TooLargeError(Exception):
    """What is sent is larger than is read."""


class Guard:
    """Lets nobody in who does not show the token or, where there is none, calls this machine by another name.

    A page of anybody's can make a browser ask loopback under a name of its own (DNS rebinding), and read the answer.
    """

    def __init__(self, app: ASGIApp, token: str | None, found: Measured) -> None:
        self._app, self._token, self._found = app, token, found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        refused = None if scope["type"] != "http" or scope["path"] in FREE else self._refused(scope)
        await (self._app if refused is None else refused)(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        if self._token is None:
            name = _called(Headers(scope=scope).get("host", ""))
            line = f"expected a loopback address as Host, got '{name}'; elsewhere --token-file is needed"
            return None if is_loopback(name) else _refused(self._found, 403, line)
        line = "expected 'Authorization: Bearer <token>' with the token of --token-file"
        return None if _shows(scope, self._token) else _refused(self._found, 401, line)


def application(
    desk: Desk,
    found: Measured,
    token: str | None,
    more: Sequence[APIRouter] = (),
    verdict: Callable[[], tuple[str, ...]] = tuple,
) -> FastAPI:
    """Return the service of a desk.

    Args:
        desk: who decides.
        found: what is counted.
        token: that must be shown; None: whoever reaches the service may ask it.
        more: doors of others, behind the same token.
        verdict: what a controller in mode shadow said last, for the page.
    """

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
        """Is the service there? It always decides; `status` says whether by its policy."""
        ready = desk.standing.ready
        return Health(status="ok" if ready else "falling back", policy_ready=ready)

    @app.get("/v1/policy")
    async def policy() -> Standing:
        """Which policy decides, and is it the newest?"""
        return desk.standing

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counters, for Prometheus."""
        return Response(found.told(desk.standing.ready), media_type="text/plain; version=0.0.4")

    @app.get("/", include_in_schema=False)
    async def look() -> Response:
        desk.shown.verdict = await asyncio.to_thread(verdict)
        return Response(page(desk.standing, desk.shown), media_type="text/html; charset=utf-8", headers=SAFE)

    for door in more:
        app.include_router(door)
    app.add_middleware(Guard, token=token, found=found)
    return app


def _decisions(app: FastAPI, desk: Desk, found: Measured) -> None:
    live = desk.live
    told: dict[str, object] = {"schema": {"$ref": REF.format(model=live.state.__name__)}, "example": desk.example}

    async def decide(request: Request) -> Response:
        try:
            raw = await _body(request)
            return Response(await desk.answer(raw), media_type="application/json")
        except TooLargeError:
            return _refused(found, 413, f"expected at most {MOST_BYTES} bytes")
        except ValidationError as error:
            return _refused(found, 422, first_problem(error, _raw(raw), "state"))
        except UserError as error:
            return _refused(found, 422, f"state: {error}")

    app.add_api_route(
        f"/v1/{live.door}",
        decide,
        methods=["POST"],
        summary="What does the policy want, with the cluster as it is?",
        responses={
            200: {"model": Reply},
            **{status: {"model": Mistake} for status in (401, 413, 422)},
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


async def _body(request: Request) -> bytes:
    """Read what was sent, and no more than is allowed, whatever its header says."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise TooLargeError
        parts.append(part)
    return b"".join(parts)


def _raw(raw: bytes) -> Json:
    """Return what was sent as far as it is JSON: the words of a mistake name its keys."""
    try:
        found: Json = from_json(raw)
    except ValueError:
        return None
    return found


def _called(host: str) -> str:
    """Return the name that a Host header calls this machine by.

    >>> [_called(host) for host in ("localhost:80", "[::1]:80", "evil.example", "[", "")]
    ['localhost', '::1', 'evil.example', '', '']
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _shows(scope: Scope, token: str) -> bool:
    shown = Headers(scope=scope).get("authorization", "")
    return hmac.compare_digest(shown.encode(), f"Bearer {token}".encode())


def _refused(found: Measured, status: int, line: str) -> JSONResponse:
    found.refused(status)
    return JSONResponse({"error": " ".join(line.split())[:500]}, status)
