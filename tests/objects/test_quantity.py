"""Quantities: the text is kept, the numbers are exact, the canonical form is Kubernetes'."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import example, given, strategies as st

from steersman.objects.quantity import Quantity

SUFFIXES = [
    "",
    "n",
    "u",
    "m",
    "k",
    "M",
    "G",
    "T",
    "P",
    "E",
    "Ki",
    "Mi",
    "Gi",
    "Ti",
    "Pi",
    "Ei",
    "e3",
    "E-3",
    "e5",
    "e-12",
    "E+7",
]


def digits(maximum: int) -> st.SearchStrategy[str]:
    return st.text("0123456789", min_size=1, max_size=maximum)


def texts() -> st.SearchStrategy[str]:
    number = st.one_of(digits(20), st.builds("{}.{}".format, digits(12), digits(12)))
    return st.builds("{}{}{}".format, st.sampled_from(["", "-", "+"]), number, st.sampled_from(SUFFIXES))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0Ki", "0"),
        ("-0m", "0"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Ki", "1Mi"),
        ("1023", "1023"),
        ("512Mi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.1Ki", "1126400m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("12e6", "12e6"),
        ("1e4", "10e3"),
        ("1E3", "1e3"),
        ("1E", "1E"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("1.23456789012", "1234567891n"),
        ("8Ei", "9223372036854775807"),
        ("-8Ei", "-9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        (" 1Gi ", "1Gi"),
        ("5.", "5"),
        (".5", "500m"),
    ],
)
def test_canonical_form_is_kubernetes_own(text: str, canonical: str) -> None:
    assert Quantity(text).canonical() == canonical


@pytest.mark.parametrize(
    ("text", "printed"), [("1.234", "1.234"), ("+5", "+5"), ("01Mi", "01Mi"), ("1.5", "1500m"), ("1000m", "1")]
)
def test_printed_is_what_an_api_server_answers(text: str, printed: str) -> None:
    """Kubernetes leaves some texts that are not canonical as they are."""
    assert Quantity(text).printed() == printed


def test_a_number_past_the_suffixes_keeps_its_value() -> None:
    assert Quantity("1000E").canonical() == "1000E"
    assert (Quantity("1Ei") * 1024).canonical() == "1024Ei"


@pytest.mark.parametrize(
    "garbage",
    ["", "Gi1", "1 Gi", "1gi", "1K", "abc", "1e", "1..5", "--1", "1+5", "NaN", "٣", "1e99999999999", "9" * 2000],
)
def test_garbage_is_held_until_a_number_is_asked(garbage: str) -> None:
    """What a server holds can be read and written back, whatever it is."""
    quantity = Quantity(garbage)
    assert str(quantity) == garbage
    assert quantity == Quantity(garbage)
    assert not quantity.is_valid()
    for ask in (
        lambda: quantity + 1,
        lambda: quantity < Quantity("1"),
        lambda: quantity == Quantity("1"),
        quantity.canonical,
        lambda: hash(quantity),
    ):
        with pytest.raises(ValueError, match="not a quantity"):
            ask()


def test_the_error_names_the_text() -> None:
    with pytest.raises(ValueError, match=r"'12Gigs'.*unknown suffix 'Gigs'"):
        Quantity("12Gigs").value()


def test_text_survives_a_round_trip_through_json() -> None:
    """An untouched quantity is written as it was read."""

    class Limits(msgspec.Struct):
        cpu: Quantity

    def dec_hook(kind: type, value: object) -> object:
        return kind(value)

    limits = msgspec.json.decode(b'{"cpu":"1000m"}', type=Limits, dec_hook=dec_hook)
    assert limits.cpu == 1
    assert msgspec.json.encode(limits, enc_hook=str) == b'{"cpu":"1000m"}'


def test_made_from_numbers() -> None:
    assert str(Quantity(1500)) == "1500"
    assert str(Quantity(Decimal("0.25"))) == "0.25"
    assert Quantity(Decimal("0.25")).canonical() == "250m"
    assert str(Quantity.exact(2**30, format="BinarySI")) == "1Gi"
    assert str(Quantity.exact(Fraction(1, 3))) == "333333334n"
    assert Quantity(Decimal("1E+3")).canonical() == "1k"


@pytest.mark.parametrize("wrong", [0.5, True, None, b"1"])
def test_floats_and_other_things_are_refused(wrong: object) -> None:
    with pytest.raises(TypeError):
        Quantity(wrong)  # type: ignore[arg-type]


def test_floats_are_refused_by_exact_too() -> None:
    with pytest.raises(TypeError, match="Decimal"):
        Quantity.exact(0.5)  # type: ignore[arg-type]


def test_results_take_the_format_of_the_left_operand_unless_it_is_zero() -> None:
    assert str(Quantity("1Gi") + Quantity("1000")) == "1073742824"
    assert str(Quantity("1Gi") + Quantity("1Gi")) == "2Gi"
    assert str(Quantity("0") + Quantity("1Gi")) == "1Gi"
    assert str(sum([Quantity("512Mi"), Quantity("512Mi")])) == "1Gi"
    assert str(1 - Quantity("250m")) == "750m"


def test_division() -> None:
    assert str(Quantity("1") / 3) == "333333334n"
    assert str(Quantity("-1") / 3) == "-333333334n"
    assert str(Quantity("1Gi") / 4) == "256Mi"
    assert str(Quantity("7") // 2) == "3"
    assert str(Quantity("7") % 2) == "1"
    assert Quantity("1Gi") / Quantity("512Mi") == 2
    assert Quantity("2500m") // Quantity("1") == 2
    with pytest.raises(ZeroDivisionError):
        _ = Quantity("1") / 0


def test_whole_and_milli_values_round_away_from_zero() -> None:
    assert Quantity("1500m").value() == 2
    assert Quantity("-1500m").value() == -2
    assert Quantity("1.0001").milli_value() == 1001


def test_copies_keep_the_text() -> None:
    for quantity in (Quantity("1000m"), Quantity("1Gi") * 3, Quantity("garbage")):
        for twin in (
            copy.copy(quantity),
            copy.deepcopy(quantity),
            pickle.loads(pickle.dumps(quantity)),
            Quantity(quantity),
        ):
            assert str(twin) == str(quantity)


@given(texts())
@example("1.Ki")
@example("9" * 19 + "Ki")
def test_the_canonical_form_is_a_fixed_point_of_the_same_value(text: str) -> None:
    quantity = Quantity(text)
    again = Quantity(quantity.canonical())
    assert again.canonical() == quantity.canonical()
    assert again == quantity
    assert hash(again) == hash(quantity)


@given(texts())
def test_the_text_is_kept(text: str) -> None:
    quantity = Quantity(text)
    assert quantity.is_valid()
    assert str(quantity) == text


@given(texts(), texts(), st.integers(-(10**6), 10**6))
def test_arithmetic_agrees_with_fractions(left: str, right: str, times: int) -> None:
    a, b = Quantity(left), Quantity(right)
    x, y = a.as_fraction(), b.as_fraction()
    assert (a + b).as_fraction() == x + y
    assert (a - b).as_fraction() == x - y
    assert (a * times).as_fraction() == x * times
    assert (-a).as_fraction() == -x
    assert (a < b, a <= b, a == b, a >= b, a > b) == (x < y, x <= y, x == y, x >= y, x > y)
    assert Fraction(a.as_decimal()) == x
    if times:
        assert (a // times).as_fraction() * times + (a % times).as_fraction() == x
        assert 0 <= abs((a / times).as_fraction()) - abs(x / times) < Fraction(1, 10**9)


@given(st.integers(-(2**70), 2**70))
def test_integers_and_quantities_are_interchangeable_as_keys(number: int) -> None:
    assert Quantity(number) == number
    assert hash(Quantity(number)) == hash(number)
    assert {number: "found"}[Quantity(str(number))] == "found"  # type: ignore[index]


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_but_never_breaks(text: str) -> None:
    quantity = Quantity(text)
    if quantity.is_valid():
        assert Quantity(quantity.canonical()) == quantity
    else:
        with pytest.raises(ValueError, match="not a quantity"):
            quantity.value()
