"""Counts and percentages."""

import pytest

from steersman.objects.int_or_string import scaled_value


def test_percentages_are_of_the_total() -> None:
    assert scaled_value("25%", 10, rounding="up") == 3
    assert scaled_value("25%", 10, rounding="down") == 2
    assert scaled_value(4, 10, rounding="down") == 4


@pytest.mark.parametrize("garbage", ["25", "%", "a%", "", "1.5%"])
def test_other_texts_are_refused(garbage: str) -> None:
    with pytest.raises(ValueError, match="neither a count nor a percentage"):
        scaled_value(garbage, 10, rounding="up")
