"""docs/like-kubernetes.md tells what this suite compares."""

from conformance.page import PAGE, unknown_rows, written


def test_the_page_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "write it anew: PYTHONPATH=tests python -m conformance.page"


def test_every_area_has_words():
    assert unknown_rows() == set()
