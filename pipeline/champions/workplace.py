"""A place of its own for policies to play in: a folder with links to what they read, as experiments of DVC have."""

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


@contextmanager
def workplace(links: Mapping[Path, Path]) -> Iterator[None]:
    """Work in a new folder that holds links, and is removed with all that was written there.

    Args:
        links: what is found at each relative path.
    """
    there = {place: target.resolve() for place, target in links.items()}
    with TemporaryDirectory() as folder:
        for place, target in there.items():
            link = Path(folder) / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
        with chdir(folder):
            yield
