"""Page of the service: the active policy, its last state and decision, and the fallback's decisions.

All text from outside is escaped and cut, and the headers forbid a browser to load or run anything.
"""

import json
import time
from collections.abc import Callable, Mapping
from functools import cache

from jinja2 import Environment, Template
from pydantic_core import from_json

from pipeline.core.types import Json
from pipeline.serving.records import ActivePolicy, RecentDecisions

MOST_ROWS, LONGEST = 50, 120  # of a table; characters of a cell
SAFE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
PAGE = """
{% macro table(rows) %}
<div class="wide"><table><tr>{% for head in rows | heads %}<th>{{ head | text }}</th>{% endfor %}</tr>
{% for row in rows %}
<tr>{% for head in rows | heads %}<td>{{ row.get(head) | text }}</td>{% endfor %}</tr>
{% endfor %}</table></div>
{% endmacro %}
{% macro contents(what, shown) %}
<dl>{% for name, value in shown.items() if value is not list and value is not none %}
<dt>{{ what }}: {{ name | text }}</dt><dd>{{ value | text }}</dd>
{% endfor %}</dl>
{% for name, value in shown.items() if value is list and value %}
<h2>{{ (what ~ ": " ~ name) | text }}: {{ value | length }}{{ ", the first %d" % most if value | length > most }}</h2>
{{ table(value[:most] | mappings) }}
{% endfor %}
{% endmacro %}
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ active.scenario }}: {{ active.policy }}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="refresh" content="5"><style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #8884; padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; }
td { max-width: 20rem; overflow-wrap: break-word; }
.bad { color: #b3261e; } @media (prefers-color-scheme: dark) { .bad { color: #f2b8b5; } }
</style></head><body><h1>{{ active.scenario | text }}</h1><dl>
<dt>policy</dt><dd>{{ active.policy | text }} ({{ active.digest[:8] | text }}),
{% if active.ready %}answers{% else %}<span class="bad">does not answer: the fallback decides</span>{% endif %}</dd>
<dt>fallback</dt><dd>{{ active.fallback | text }}</dd>
<dt>decisions</dt><dd>{{ recent.decisions }}, of them {{ recent.fell_back }} by the fallback</dd>
<dt>restarted</dt><dd>{{ active.restarts }} times</dd>
{% if active.said %}<dt>errors</dt><dd><span class="bad">{{ active.said | text }}</span></dd>{% endif %}</dl>
{% if reply %}
<h2>Last decision, {{ recent.at | clock }}</h2><dl><dt>by</dt>
<dd>{% if reply.fell_back %}<span class="bad">fallback {{ reply.policy | text }}: {{ reply.why | text }}</span>
{% else %}{{ reply.policy | text }}{% endif %}</dd></dl>
{{ contents("decided", reply.decision) }}{{ contents("asked", state) }}
{% else %}<h2>No decision yet</h2>{% endif %}
{% if recent.whys %}<h2>Last decisions of the fallback</h2>{{ table(recent.whys | fallbacks) }}{% endif %}
{% if recent.verdict %}<h2>Last verdict of mode shadow</h2>{{ table(recent.verdict[:most] | mappings) }}{% endif %}
</body></html>
"""


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
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.tests["list"] = lambda value: isinstance(value, list)
    filters: dict[str, Callable[..., object]] = {
        "text": _text,
        "clock": _clock,
        "mappings": lambda rows: [one if isinstance(one, Mapping) else {"": one} for one in rows],
        "heads": lambda rows: list(dict.fromkeys(name for row in rows for name in row)),
        "fallbacks": lambda whys: [{"when": _clock(at), "why": why} for at, why in reversed(whys)],
    }
    environment.filters |= filters
    return environment.from_string(PAGE)
