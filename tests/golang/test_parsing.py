"""Values as Go parses them: the messages are those of its ``time``, ``strconv``, ``net/url``, ``net/netip`` and others."""

from __future__ import annotations

import pytest

from steersman.golang import (
    WrongTag,
    base64_problem,
    duration_nanoseconds,
    is_uri,
    parse_address,
    parse_int,
    parse_prefix,
    parse_uint,
    printed_duration,
    quoted,
    tagged_yaml_scalar,
    uri_problem,
    url_problem,
    yaml_scalar,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "printed"),
    [
        ("0", 0, "0s"),
        ("+1.5s", 1_500_000_000, "1.5s"),
        ("-1h30m", -5_400_000_000_000, "-1h30m0s"),
        (".5ms", 500_000, "500µs"),
        ("1m30s", 90_000_000_000, "1m30s"),
        ("1.5h", 5_400_000_000_000, "1h30m0s"),
        ("-2s", -2_000_000_000, "-2s"),
        ("250ms", 250_000_000, "250ms"),
        (".5s", 500_000_000, "500ms"),
        ("." + "0" * 99 + "s", 0, "0s"),
        ("1.s", 1_000_000_000, "1s"),
        ("1μs1ns", 1_001, "1.001µs"),
        ("0.3ns", 0, "0s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
        ("0" * 10_000 + "1s", 1_000_000_000, "1s"),
    ],
)
def test_durations(text, nanoseconds, printed):
    assert duration_nanoseconds(text) == nanoseconds
    assert printed_duration(nanoseconds) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        ("1x", 'time: unknown unit "x" in duration "1x"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("é", r'time: invalid duration "\xc3\xa9"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9" * 10_000 + "h", f'time: invalid duration "{"9" * 1024}..."'),
    ],
)
def test_invalid_durations(text, message):
    with pytest.raises(ValueError, match="time: ") as raised:
        duration_nanoseconds(text)
    assert str(raised.value) == message


def test_integers():
    """Python would also accept spaces, underscores and other digits."""
    assert [parse_int(text) for text in ("+7", "-0", str(-(2**63)), "0" * 5000 + "1")] == [7, 0, -(2**63), 1]
    assert parse_uint(str(2**64 - 1)) == 2**64 - 1


@pytest.mark.parametrize("text", ["", "1_0", " 1", "1 ", "٣", "+", "--1", "0x1"])
def test_invalid_integers(text):
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_int(text)
    with pytest.raises(ValueError, match="invalid syntax"):
        parse_uint(text)


def test_integers_beyond_64_bits():
    with pytest.raises(ValueError, match=r'^strconv.Atoi: parsing "9223372036854775808": value out of range$'):
        parse_int(str(2**63), function="Atoi")
    with pytest.raises(ValueError, match=r"strconv.ParseUint: .* value out of range"):
        parse_uint("9" * 5000)


@pytest.mark.parametrize(
    ("text", "parsed", "requested"),
    [
        ("https://a.b/c?d#e", "", ""),
        ("mailto:a", "", ""),
        ("", "", "empty url"),
        ("a/b", "", "invalid URI for request"),
        ("a:b/c", "", ""),
        ("1:b", "first path segment in URL cannot contain colon", "invalid URI for request"),
        (":x", "missing protocol scheme", "missing protocol scheme"),
        ("/a\n", "net/url: invalid control character in URL", "net/url: invalid control character in URL"),
        ("http://a b/", 'invalid character " " in host name', 'invalid character " " in host name'),
        ("http://a:b/", 'invalid port ":b" after host', 'invalid port ":b" after host'),
        ("http://a:1:2/", 'invalid port ":1:2" after host', 'invalid port ":1:2" after host'),
        ("db://a:1,b:2/", "", ""),
        ("http://[::1", "missing ']' in host", "missing ']' in host"),
        ("http://[1.2.3.4]/", "invalid IP-literal", "invalid IP-literal"),
        ("http://[fe80::1%25en0]:80/", "", ""),
        ("http://u[r@h/", "net/url: invalid userinfo", "net/url: invalid userinfo"),
        ("/%zz", 'invalid URL escape "%zz"', 'invalid URL escape "%zz"'),
        ("/%aé", r'invalid URL escape "%a\xc3"', r'invalid URL escape "%a\xc3"'),
    ],
)
def test_urls(text, parsed, requested):
    """The verdicts and messages of ``url.Parse`` and ``url.ParseRequestURI``."""
    assert url_problem(text).removeprefix(f"parse {quoted(text)}: ") == parsed
    assert uri_problem(text).removeprefix(f"parse {quoted(text)}: ") == requested
    assert is_uri(text) == (not requested)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("1.2.3.4", ""),
        ("::1", ""),
        ("fe80::1%a/b%c", ""),
        ("::ffff:1.2.3.4", ""),
        ("a", "unable to parse IP"),
        ("%a", "missing IPv6 address"),
        ("::%", "zone must be a non-empty string"),
        ("01.2.3.4", "IPv4 field has octet with leading zero"),
        ("1.2.3", "IPv4 address too short"),
        ("1..2.3", 'IPv4 field must have at least one digit (at ".2.3")'),
        ("12345::", 'each group must have 4 or less digits (at "12345::")'),
        ("1::2::3", 'multiple :: in address (at ":3")'),
        ("1:2", "address string too short"),
        ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
        ("1:2:3:4:5:6:7:8:9", 'trailing garbage after address (at "9")'),
        ("1:1.2.3.4", 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")'),
    ],
)
def test_addresses(text, problem):
    """The verdicts and messages of ``netip.ParseAddr``."""
    if not problem:
        parse_address(text)
        return
    with pytest.raises(ValueError, match=r"^ParseAddr\(") as raised:
        parse_address(text)
    assert str(raised.value) == f'ParseAddr("{text}"): {problem}'


def test_prefixes():
    assert [bits for _, bits in map(parse_prefix, ("10.0.0.0/8", "::/0"))] == [8, 0]
    for text, problem in (("1.2.3.4", "no '/'"), ("::/08", 'bad bits after slash: "08"'), ("::/129", "prefix length")):
        with pytest.raises(ValueError, match=r"^netip.ParsePrefix\(") as raised:
            parse_prefix(text)
        assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("text", "at"), [("", -1), ("YQ==", -1), ("Y\nQ=\r=", -1), ("YQ", 0), ("YQ=", 3), ("Y!==", 1), ("YWJj?", 4)]
)
def test_base64(text, at):
    assert base64_problem(text) == (f"illegal base64 data at input byte {at}" if at >= 0 else "")


@pytest.mark.parametrize(
    "text", ["AAAA", "AAA", "AA==", "AA=", "A===", "=", "AAA=\n", "A\nA\r\nA\nA!", "AAAA\nAA=\n=", "", "\n", "AAAAAA=A"]
)
def test_what_is_wrong_with_base64_is_found_behind_much_that_is_right(text):
    """The place that is named does not depend on how much is skipped at once."""
    alone, behind = base64_problem(text), base64_problem("A\nAAA" * 1_000 + text)
    place = alone.rpartition(" ")[2]
    assert behind == (alone.removesuffix(place) + str(int(place) + 5_000) if alone else "")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("on", True),
        ("N", False),
        ("yEs", "yEs"),
        ("010", 8),
        ("08", 8),
        ("0644", 0o644),
        ("0X1F", 31),
        ("0O17", 15),
        ("-0b11", -3),
        ("1_000", 1000),
        ("_1", "_1"),
        ("1e3", 1000),
        ("-.5", -0.5),
        ("1e999", "1e999"),
        ("1:30", "1:30"),
        ("2001-01-01", "2001-01-01"),
        ("-9223372036854775808", -(2**63)),
        ("0777777777777777777777777", 777777777777777777777777.0),
        ("0xFFFFFFFFFFFFFFFFFF", "0xFFFFFFFFFFFFFFFFFF"),
        ("nan", "nan"),
    ],
)
def test_plain_scalars_of_yaml(text: str, value: object) -> None:
    """As kubectl prints them; `tests/client/test_kubeconfig_merging.py` compares with it."""
    found = yaml_scalar(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.Inf", ".NaN"])
def test_numbers_that_json_lacks_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="json: unsupported value"):
        yaml_scalar(text)


def test_many_digits_of_yaml_are_read_in_linear_time() -> None:
    assert yaml_scalar("9" * 1_000_000) == "9" * 1_000_000
    assert yaml_scalar("0x" + "f" * 1_000_000) == "0x" + "f" * 1_000_000


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("int", "5", 5), ("int", "0x1F", 31), ("float", "5", 5), ("float", "1.5", 1.5), ("bool", "yes", True), ("null", "", None), ("str", "true", "true"),
        ("binary", "eA==", "x"), ("binary", "/w==", "\ufffd"), ("timestamp", "2001-01-01", "2001-01-01"), ("odd", "5", "5"),
    ],
)  # fmt: skip
def test_a_tag_decides_about_the_type_of_a_scalar(tag, text, value):
    found = tagged_yaml_scalar(f"tag:yaml.org,2002:{tag}", text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("tag", "text", "said"),
    [
        ("int", "x", "yaml: cannot decode !!str `x` as a !!int"),
        ("int", "1.0", "yaml: cannot decode !!float `1.0` as a !!int"),
        ("bool", "5", "yaml: cannot decode !!int `5` as a !!bool"),
        ("null", "true", "yaml: cannot decode !!bool `true` as a !!null"),
        ("binary", "!", "yaml: !!binary value contains invalid base64 data"),
    ],
)
def test_a_scalar_without_the_type_of_its_tag_is_an_error(tag, text, said):
    with pytest.raises(WrongTag) as wrong:
        tagged_yaml_scalar(f"tag:yaml.org,2002:{tag}", text)
    assert str(wrong.value) == said
