"""The functions, operators and types of expressions in a CRD: those of kube-apiserver 1.36.

Guarantees
- `functions()` has every overload with the server's name, types and order: CEL's own, the extensions for strings,
  lists, sets, optionals and two-variable comprehensions, and Kubernetes' libraries for lists, regular expressions,
  URLs, addresses, quantities, named formats and semantic versions.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from steersman.cel import types as t
from steersman.cel.types import Type, params_of, read_type, split_types

_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_SUMMABLE: Final = ("int", "uint", "double", "duration")
_NUMBERS: Final = ("int", "uint", "double")

#: function overload(parameters) result; a dot before the overload marks a method, whose first parameter is the target.
_TABLE: Final = """
_?_:_ conditional(bool, A, A) A
_&&_ logical_and(bool, bool) bool
_||_ logical_or(bool, bool) bool
!_ logical_not(bool) bool
@not_strictly_false not_strictly_false(bool) bool
_==_ equals(A, A) bool
_!=_ not_equals(A, A) bool
_+_ add_bytes(bytes, bytes) bytes
_+_ add_double(double, double) double
_+_ add_duration_duration(duration, duration) duration
_+_ add_duration_timestamp(duration, timestamp) timestamp
_+_ add_timestamp_duration(timestamp, duration) timestamp
_+_ add_int64(int, int) int
_+_ add_list(list(A), list(A)) list(A)
_+_ add_string(string, string) string
_+_ add_uint64(uint, uint) uint
_/_ divide_double(double, double) double
_/_ divide_int64(int, int) int
_/_ divide_uint64(uint, uint) uint
_%_ modulo_int64(int, int) int
_%_ modulo_uint64(uint, uint) uint
_*_ multiply_double(double, double) double
_*_ multiply_int64(int, int) int
_*_ multiply_uint64(uint, uint) uint
-_ negate_double(double) double
-_ negate_int64(int) int
_-_ subtract_double(double, double) double
_-_ subtract_duration_duration(duration, duration) duration
_-_ subtract_int64(int, int) int
_-_ subtract_timestamp_duration(timestamp, duration) timestamp
_-_ subtract_timestamp_timestamp(timestamp, timestamp) duration
_-_ subtract_uint64(uint, uint) uint
_[_] index_list(list(A), int) A
_[_] index_map(map(A, B), A) B
_[_] optional_list_index_int(optional(list(V)), int) optional(V)
_[_] optional_map_index_value(optional(map(K, V)), K) optional(V)
_[?_] list_optindex_optional_int(list(V), int) optional(V)
_[?_] optional_list_optindex_optional_int(optional(list(V)), int) optional(V)
_[?_] map_optindex_optional_value(map(K, V), K) optional(V)
_[?_] optional_map_optindex_optional_value(optional(map(K, V)), K) optional(V)
_?._ select_optional_field(dyn, string) optional(V)
@in in_list(A, list(A)) bool
@in in_map(A, map(A, B)) bool
size size_bytes(bytes) int
size .bytes_size(bytes) int
size size_list(list(A)) int
size .list_size(list(A)) int
size size_map(map(A, B)) int
size .map_size(map(A, B)) int
size size_string(string) int
size .string_size(string) int
type type(A) type(A)
bool bool_to_bool(bool) bool
bool string_to_bool(string) bool
bytes bytes_to_bytes(bytes) bytes
bytes string_to_bytes(string) bytes
double double_to_double(double) double
double int64_to_double(int) double
double string_to_double(string) double
double uint64_to_double(uint) double
duration duration_to_duration(duration) duration
duration int64_to_duration(int) duration
duration string_to_duration(string) duration
dyn to_dyn(A) dyn
int int64_to_int64(int) int
int double_to_int64(double) int
int duration_to_int64(duration) int
int string_to_int64(string) int
int timestamp_to_int64(timestamp) int
int uint64_to_int64(uint) int
string string_to_string(string) string
string bool_to_string(bool) string
string bytes_to_string(bytes) string
string double_to_string(double) string
string duration_to_string(duration) string
string int64_to_string(int) string
string timestamp_to_string(timestamp) string
string uint64_to_string(uint) string
string ip_to_string(IP) string
string cidr_to_string(CIDR) string
timestamp timestamp_to_timestamp(timestamp) timestamp
timestamp int64_to_timestamp(int) timestamp
timestamp string_to_timestamp(string) timestamp
uint uint64_to_uint64(uint) uint
uint double_to_uint64(double) uint
uint int64_to_uint64(int) uint
uint string_to_uint64(string) uint
contains .contains_string(string, string) bool
endsWith .ends_with_string(string, string) bool
startsWith .starts_with_string(string, string) bool
matches matches(string, string) bool
matches .matches_string(string, string) bool
optional.of optional_of(V) optional(V)
optional.ofNonZeroValue optional_ofNonZeroValue(V) optional(V)
optional.none optional_none() optional(V)
value .optional_value(optional(V)) V
hasValue .optional_hasValue(optional(V)) bool
or .optional_or_optional(optional(V), optional(V)) optional(V)
orValue .optional_orValue_value(optional(V), V) V
last .list_last(list(V)) optional(V)
first .list_first(list(V)) optional(V)
optional.unwrap optional_unwrap(list(optional(V))) list(V)
unwrapOpt .optional_unwrapOpt(list(optional(V))) list(V)
indexOf .list_a_index_of_int(list(A), A) int
lastIndexOf .list_a_last_index_of_int(list(A), A) int
find .string_find_string(string, string) string
findAll .string_find_all_string(string, string) list(string)
findAll .string_find_all_string_int(string, string, int) list(string)
url string_to_url(string) URL
getScheme .url_get_scheme(URL) string
getHost .url_get_host(URL) string
getHostname .url_get_hostname(URL) string
getPort .url_get_port(URL) string
getEscapedPath .url_get_escaped_path(URL) string
getQuery .url_get_query(URL) map(string, list(string))
isURL is_url_string(string) bool
quantity string_to_quantity(string) Quantity
isQuantity is_quantity_string(string) bool
sign quantity_sign(Quantity) int
isGreaterThan .quantity_is_greater_than(Quantity, Quantity) bool
isLessThan .quantity_is_less_than(Quantity, Quantity) bool
compareTo .quantity_compare_to(Quantity, Quantity) int
asApproximateFloat .quantity_get_float(Quantity) double
asInteger .quantity_get_int(Quantity) int
isInteger .quantity_is_integer(Quantity) bool
add .quantity_add(Quantity, Quantity) Quantity
add .quantity_add_int(Quantity, int) Quantity
sub .quantity_sub(Quantity, Quantity) Quantity
sub .quantity_sub_int(Quantity, int) Quantity
charAt .string_char_at_int(string, int) string
indexOf .string_index_of_string(string, string) int
indexOf .string_index_of_string_int(string, string, int) int
lastIndexOf .string_last_index_of_string(string, string) int
lastIndexOf .string_last_index_of_string_int(string, string, int) int
lowerAscii .string_lower_ascii(string) string
replace .string_replace_string_string(string, string, string) string
replace .string_replace_string_string_int(string, string, string, int) string
split .string_split_string(string, string) list(string)
split .string_split_string_int(string, string, int) list(string)
substring .string_substring_int(string, int) string
substring .string_substring_int_int(string, int, int) string
trim .string_trim(string) string
upperAscii .string_upper_ascii(string) string
format .string_format(string, list(dyn)) string
strings.quote strings_quote(string) string
join .list_join(list(string)) string
join .list_join_string(list(string), string) string
sets.contains list_sets_contains_list(list(T), list(T)) bool
sets.equivalent list_sets_equivalent_list(list(T), list(T)) bool
sets.intersects list_sets_intersects_list(list(T), list(T)) bool
ip string_to_ip(string) IP
family .ip_family(IP) int
ip.isCanonical ip_is_canonical(string) bool
isUnspecified .ip_is_unspecified(IP) bool
isLoopback .ip_is_loopback(IP) bool
isLinkLocalMulticast .ip_is_link_local_multicast(IP) bool
isLinkLocalUnicast .ip_is_link_local_unicast(IP) bool
isGlobalUnicast .ip_is_global_unicast(IP) bool
isIP is_ip(string) bool
cidr string_to_cidr(string) CIDR
containsIP .cidr_contains_ip_string(CIDR, string) bool
containsIP .cidr_contains_ip_ip(CIDR, IP) bool
containsCIDR .cidr_contains_cidr_string(CIDR, string) bool
containsCIDR .cidr_contains_cidr(CIDR, CIDR) bool
ip .cidr_ip(CIDR) IP
prefixLength .cidr_prefix_length(CIDR) int
masked .cidr_masked(CIDR) CIDR
isCIDR is_cidr(string) bool
validate .format-validate(Format, string) optional(list(string))
format.named format-named(string) optional(Format)
cel.@mapInsert @mapInsert_map_key_value(map(K, V), K, V) map(K, V)
cel.@mapInsert @mapInsert_map_map(map(K, V), map(K, V)) map(K, V)
semver string_to_semver(string) Semver
semver string_bool_to_semver(string, bool) Semver
isSemver is_semver_string(string) bool
isSemver is_semver_string_bool(string, bool) bool
isGreaterThan .semver_is_greater_than(Semver, Semver) bool
isLessThan .semver_is_less_than(Semver, Semver) bool
compareTo .semver_compare_to(Semver, Semver) int
major .semver_major(Semver) int
minor .semver_minor(Semver) int
patch .semver_patch(Semver) int
slice .list_slice(list(T), int, int) list(T)
flatten .list_flatten(list(list(T))) list(T)
flatten .list_flatten_int(list(dyn), int) list(dyn)
lists.range lists_range(int) list(int)
reverse .list_reverse(list(T)) list(T)
distinct .list_distinct(list(T)) list(T)
path .authorizer_path(Authorizer, string) PathCheck
group .authorizer_group(Authorizer, string) GroupCheck
serviceAccount .authorizer_serviceaccount(Authorizer, string, string) Authorizer
resource .groupcheck_resource(GroupCheck, string) ResourceCheck
subresource .resourcecheck_subresource(ResourceCheck, string) ResourceCheck
namespace .resourcecheck_namespace(ResourceCheck, string) ResourceCheck
name .resourcecheck_name(ResourceCheck, string) ResourceCheck
fieldSelector .authorizer_fieldselector(ResourceCheck, string) ResourceCheck
labelSelector .authorizer_labelselector(ResourceCheck, string) ResourceCheck
check .pathcheck_check(PathCheck, string) Decision
check .resourcecheck_check(ResourceCheck, string) Decision
errored .decision_errored(Decision) bool
error .decision_error(Decision) string
allowed .decision_allowed(Decision) bool
reason .decision_reason(Decision) string
"""
_OF_TIMES: Final = {
    "getFullYear": "timestamp_to_year",
    "getMonth": "timestamp_to_month",
    "getDayOfYear": "timestamp_to_day_of_year",
    "getDayOfMonth": "timestamp_to_day_of_month",
    "getDate": "timestamp_to_day_of_month_1_based",
    "getDayOfWeek": "timestamp_to_day_of_week",
    "getHours": "timestamp_to_hours",
    "getMinutes": "timestamp_to_minutes",
    "getSeconds": "timestamp_to_seconds",
    "getMilliseconds": "timestamp_to_milliseconds",
}
_OF_DURATIONS: Final = ("Hours", "Minutes", "Seconds", "Milliseconds")
NAMED_FORMATS: Final = (
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
)
#: Names that denote types in an expression.
TYPE_NAMES: Final[dict[str, Type]] = {
    **{name: read_type(name) for name in ("bool", "bytes", "double", "int", "string", "uint")},
    "google.protobuf.Duration": t.DURATION,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "type": t.TYPE,
    "optional_type": t.optional_of(t.param("V")),
    "net.IP": t.IP,
    "net.CIDR": t.CIDR,
}


class Overload(NamedTuple):
    """One way to call a function."""

    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type
    params: frozenset[Type]


@cache
def functions() -> dict[str, list[Overload]]:
    """All functions with their overloads."""
    found: dict[str, list[Overload]] = {}
    for line in [*_TABLE.strip().splitlines(), *_comparisons(), *_of_lists(), *_of_times(), *_of_formats()]:
        function, _, rest = line.partition(" ")
        name, _, signature = rest.partition("(")
        end = _closing(signature)
        inside, result = signature[:end], signature[end + 1 :]
        args = tuple(read_type(part) for part in split_types(inside))
        kind = read_type(result)
        params = frozenset(params_of([*args, kind]))
        overload = Overload(name.removeprefix("."), name.startswith("."), args, kind, params)
        found.setdefault(function, []).append(overload)
    return found


def _closing(signature: str) -> int:
    """The index of the closing parenthesis of the parameters."""
    depth = 1
    for at, sign in enumerate(signature):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return at
    raise ValueError(signature)


def _comparisons() -> list[str]:
    lines: list[str] = []
    names = {"int": "int64", "uint": "uint64"}
    for sign, name in {"<": "less", "<=": "less_equals", ">": "greater", ">=": "greater_equals"}.items():
        for one in _ORDERED:
            lines.append(f"_{sign}_ {name}_{names.get(one, one)}({one}, {one}) bool")
            if one in _NUMBERS:
                lines += [
                    f"_{sign}_ {name}_{names.get(one, one)}_{names.get(two, two)}({one}, {two}) bool"
                    for two in _NUMBERS
                    if two != one
                ]
    return lines


def _of_lists() -> list[str]:
    return [
        *(f"isSorted .list_{kind}_is_sorted_bool(list({kind})) bool" for kind in _COMPARABLE),
        *(f"sum .list_{kind}_sum_{kind}(list({kind})) {kind}" for kind in _SUMMABLE),
        *(f"max .list_{kind}_max_{kind}(list({kind})) {kind}" for kind in _COMPARABLE),
        *(f"min .list_{kind}_min_{kind}(list({kind})) {kind}" for kind in _COMPARABLE),
        *(f"sort .list_{kind}_sort(list({kind})) list({kind})" for kind in _COMPARABLE),
        *(
            f"@sortByAssociatedKeys .list_{kind}_sortByAssociatedKeys(list(T), list({kind})) list(T)"
            for kind in _COMPARABLE
        ),
    ]


def _of_times() -> list[str]:
    lines: list[str] = []
    for function, overload in _OF_TIMES.items():
        lines.append(f"{function} .{overload}(timestamp) int")
        lines.append(f"{function} .{overload}_with_tz(timestamp, string) int")
    lines += [f"get{part} .duration_to_{part.lower()}(duration) int" for part in _OF_DURATIONS]
    return lines


def _of_formats() -> list[str]:
    return [f"format.{name} format.{name}() Format" for name in NAMED_FORMATS]
