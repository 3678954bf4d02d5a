"""From an order to factors."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.steering.factors import assign_factors

FACTORS = st.one_of(st.just(0), st.integers(-5, 60))


@given(data=st.data(), count=st.integers(1, 12))
def test_factors_fall_along_the_order_and_what_stands_right_stays(data: st.DataObject, count: int) -> None:
    order = data.draw(st.permutations(range(count)))
    strength = data.draw(st.sampled_from([count + 1, 20, 50]))
    now = {job: data.draw(FACTORS) for job in order}
    new = assign_factors(order, now, strength)
    after = [new.get(job, now[job]) for job in order]
    assert after == sorted(set(after), reverse=True)
    assert after[-1] >= 1
    assert after[0] <= strength
    assert all(now[job] != factor for job, factor in new.items())
    assert assign_factors(order, now | new, strength) == {}


def test_one_that_comes_changes_nobody_else() -> None:
    now = assign_factors(range(100), {}, 1_000_000)
    assert list(assign_factors([*range(50), 100, *range(50, 100)], now, 1_000_000)) == [100]


def test_where_there_is_no_room_only_those_behind_are_moved() -> None:
    now = {1: 900, 2: 500, 3: 499, 4: 498, 5: 100}
    assert assign_factors([1, 2, 9, 3, 4, 5], now, 1000) == {9: 400, 3: 300, 4: 200}


def test_where_there_is_no_room_at_the_end_all_are_spread_anew() -> None:
    assert assign_factors([1, 3, 2], {1: 2, 2: 1}, 11) == {1: 9, 3: 6, 2: 3}
