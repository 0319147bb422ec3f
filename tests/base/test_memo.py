# SPDX-License-Identifier: MIT
"""A memo keeps what was put last, whoever puts it."""

from concurrent.futures import ThreadPoolExecutor

from cklang.memo import BoundedMemo


def test_the_oldest_goes_first() -> None:
    memo: BoundedMemo[int, str] = BoundedMemo(3)
    for number in range(5):
        memo.put(number, str(number))
    assert [memo.get(number) for number in range(5)] == [None, None, "2", "3", "4"]
    assert len(memo) == 3


def test_a_value_that_is_put_again_takes_no_room() -> None:
    memo: BoundedMemo[str, int] = BoundedMemo(2)
    memo.put("a", 1)
    memo.put("b", 2)
    memo.put("b", 3)
    assert (memo.get("a"), memo.get("b")) == (1, 3)


def test_nothing_is_left_after_clearing() -> None:
    memo: BoundedMemo[str, int] = BoundedMemo(2)
    memo.put("a", 1)
    memo.clear()
    assert memo.get("a") is None
    assert len(memo) == 0


def test_threads_never_keep_more_than_the_limit() -> None:
    memo: BoundedMemo[int, int] = BoundedMemo(16)

    def fill(first: int) -> int:
        most = 0
        for number in range(first, first + 2000):
            memo.put(number, number)
            most = max(most, len(memo))
            assert memo.get(number) in (None, number)
        return most

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(fill, range(0, 8000, 2000))) <= 16
