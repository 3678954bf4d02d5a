"""Why tests were skipped: one line per reason, with the number of tests."""

from collections import Counter
from collections.abc import Iterable

AND_MORE = ", and "  # follows the reason and says which file is missing


def reasons(said: Iterable[str]) -> list[str]:
    """Return a line for each reason, the most frequent first.

    >>> reasons(["Skipped: no logs, and a is not there", "Skipped: no browser", "Skipped: no logs, and b is not there"])
    ['skipped 2: no logs', 'skipped 1: no browser']
    """
    counts = Counter(" ".join(one.removeprefix("Skipped: ").partition(AND_MORE)[0].split()) for one in said)
    return [f"skipped {count}: {reason}" for reason, count in counts.most_common()]
