"""Page of the service: the policy in charge, its last state and decision, and the fallback's decisions.

All that comes from outside is escaped and cut, and the headers forbid a browser to load or run anything.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from html import escape

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
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border-bottom: 1px solid #8884; padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top; }
td { max-width: 20rem; overflow-wrap: break-word; }
.bad { color: #b3261e; } @media (prefers-color-scheme: dark) { .bad { color: #f2b8b5; } }
"""


def page(active: ActivePolicy, recent: RecentDecisions) -> str:
    """Return the page as HTML."""
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>',
            escape(f"{active.scenario}: {active.policy}"),
            '</title><meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="refresh" content="5"><style>{STYLE}</style></head><body>',
            *_active(active, recent),
            *_last(recent),
            *_lists(recent),
            "</body></html>",
        )
    )


def _active(active: ActivePolicy, recent: RecentDecisions) -> Iterator[str]:
    yield f"<h1>{_text(active.scenario)}</h1>"
    state = "answers" if active.ready else '<span class="bad">does not answer: the fallback decides</span>'
    yield from _pairs(
        {
            "policy": f"{_text(active.policy)} ({_text(active.digest[:8])}), {state}",
            "fallback": _text(active.fallback),
            "decisions": f"{recent.decisions}, of them {recent.fell_back} by the fallback",
            "restarted": f"{active.restarts} times",
            **({"errors": f'<span class="bad">{_text(active.said)}</span>'} if active.said else {}),
        }
    )


def _last(recent: RecentDecisions) -> Iterator[str]:
    if recent.state is None or recent.reply is None:
        yield "<h2>No decision yet</h2>"
        return
    state, reply = from_json(recent.state), from_json(recent.reply)
    yield f"<h2>Last decision, {_clock(recent.at)}</h2>"
    why = f"fallback {_text(reply['policy'])}: {_text(reply['why'])}" if reply["fell_back"] else _text(reply["policy"])
    yield from _pairs({"by": f'<span class="bad">{why}</span>' if reply["fell_back"] else why})
    yield from _tables("decided", reply["decision"])
    yield from _tables("asked", state)


def _lists(recent: RecentDecisions) -> Iterator[str]:
    if recent.whys:
        yield "<h2>Last decisions of the fallback</h2>"
        yield from _table([{"when": _clock(at), "why": why} for at, why in reversed(recent.whys)])
    if recent.verdict:
        yield "<h2>Last verdict of mode shadow</h2>"
        yield from _table([{"": line} for line in recent.verdict[:MOST_ROWS]])


def _tables(what: str, shown: Mapping[str, Json]) -> Iterator[str]:
    """Show single values as pairs and lists as tables; omit what is missing."""
    single = {name: value for name, value in shown.items() if not isinstance(value, list) and value is not None}
    yield from _pairs({f"{what}: {_text(name)}": _text(value) for name, value in single.items()})
    for name, value in shown.items():
        if isinstance(value, list) and value:
            more = f", the first {MOST_ROWS}" if len(value) > MOST_ROWS else ""
            yield f"<h2>{_text(f'{what}: {name}')}: {len(value)}{more}</h2>"
            yield from _table([one if isinstance(one, Mapping) else {"": one} for one in value[:MOST_ROWS]])


def _table(rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    heads = list(dict.fromkeys(name for row in rows for name in row))
    if not heads:
        return
    yield '<div class="wide"><table><tr>' + "".join(f"<th>{_text(head)}</th>" for head in heads) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{_text(row.get(head))}</td>" for head in heads) + "</tr>"
    yield "</table></div>"


def _pairs(pairs: Mapping[str, str]) -> Iterator[str]:
    """Show names and values, both HTML already."""
    if pairs:
        yield "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in pairs.items()) + "</dl>"


def _text(value: Json) -> str:
    """Return a value as escaped text on one line."""
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
    return escape(plain if len(plain) <= LONGEST else f"{plain[:LONGEST]}…")


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))
