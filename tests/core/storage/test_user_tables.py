"""Tables that users wrote: read in chunks, numbered across chunks, ids unchanged."""

from pathlib import Path

import pandas as pd
import pytest

from pipeline.core.storage.user_tables import user_table
from pipeline.errors import UserError


def test_chunks_are_numbered_throughout_and_ids_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv.gz"
    pd.DataFrame({"job": ["007", "NA", "8"], "arrival": [0, 1, 2]}).to_csv(path, index=False)
    chunks = [frame for frame, _ in user_table(path, ["job"], rows=2)]
    assert [frame.index.tolist() for frame in chunks] == [[0, 1], [2]]
    assert pd.concat(chunks)["job"].tolist() == ["007", "NA", "8"]


def test_a_parquet_is_read_without_its_index(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    pd.DataFrame({"job": [1, 2], "arrival": [0.5, 1.5]}, index=[7, 9]).to_parquet(path)
    ((frame, percent),) = user_table(path, ["job"])
    assert (frame.columns.tolist(), frame.index.tolist(), percent) == (["job", "arrival"], [0, 1], 100)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("jobs.csv", b"", "expected jobs, found an empty file"),
        ("jobs.csv", b"job,arrival\n1,2,3,4\n5,6,7\n", "expected as many fields in a row as in the header"),
        ("jobs.csv", b"job\n\xff\xfe\n", "not a readable table"),
        ("jobs.csv.gz", b"job\n1\n", "not a readable table"),
        ("jobs.parquet", b"job\n1\n", "not a readable table"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said) as caught:
        list(user_table(tmp_path / name, ["job"]))
    assert "\n" not in str(caught.value)
