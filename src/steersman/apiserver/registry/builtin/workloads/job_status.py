"""The status of Jobs: what a Job's controller may report, given its earlier reports."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, subtree
from steersman.apiserver.registry.builtin.workloads.job_policies import count_indexes, index_interval
from steersman.objects import parse_time
from steersman.objects.field_problems import (
    FieldProblem,
    duplicate,
    invalid,
    invalid_without_value,
    not_negative,
    required,
    until_enough,
)

_CONDITIONS = "status.conditions"


def _true(status: Mapping[str, Any], type_: str) -> bool:
    return any(one.get("type") == type_ and one.get("status") == "True" for one in items(status, "conditions"))


def job_status(obj: Tree, old: Tree) -> list[FieldProblem]:
    """Validate a status; unchanged parts are not validated again."""
    spec, status, before = subtree(obj, "spec"), subtree(obj, "status"), subtree(old, "status")
    problems: list[FieldProblem] = []
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        problems += not_negative(f"status.{name}", status.get(name))
    problems += _uncounted(status) + _conditions(status, before) + _times(status, before)
    problems += _finished(spec, status, before) + _indexes(spec, status, before) + _criteria(spec, status)
    return problems + _since(spec, status, before)


def _uncounted(status: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in until_enough(items(inner(status, "uncountedTerminatedPods"), field), problems):
            where = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                problems.append(invalid(where, uid, "must not be empty"))
            elif uid in seen:
                problems.append(duplicate(where, uid))
            seen.add(uid)
    return problems


def _changed(status: Tree, before: Tree, *types: str) -> bool:
    return any(_true(status, type_) != _true(before, type_) for type_ in types)


def _conditions(status: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    complete = _true(status, "Complete")
    if _changed(status, before, "Complete", "Failed") and complete and _true(status, "Failed"):
        problems.append(invalid_without_value(_CONDITIONS, "cannot set Complete=True and Failed=true conditions"))
    if _changed(status, before, "Complete", "FailureTarget") and complete and _true(status, "FailureTarget"):
        problems.append(
            invalid_without_value(_CONDITIONS, "cannot set Complete=True and FailureTarget=true conditions")
        )
    return problems


def _times(status: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    done, begun = status.get("completionTime"), status.get("startTime")
    complete = _true(status, "Complete")
    where = "status.completionTime"
    if _changed(status, before, "Complete") or done != before.get("completionTime"):
        if done is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            problems.append(invalid(where, done, detail))
        if done is None and complete:
            problems.append(required(where, "completionTime is required for Complete jobs"))
    changed = begun != before.get("startTime") or done != before.get("completionTime")
    if changed and begun is not None and done is not None and parse_time(done) < parse_time(begun):
        problems.append(invalid(where, done, "must be equal to or after `startTime`"))
    return problems


def _finished(spec: Tree, status: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    complete, failed = _true(status, "Complete"), _true(status, "Failed")
    finished = complete or failed
    ended = finished != (_true(before, "Complete") or _true(before, "Failed"))
    indexes = status.get("failedIndexes") != before.get("failedIndexes")
    if (_changed(status, before, "Failed") or indexes) and failed and not _true(status, "FailureTarget"):
        detail = "cannot set Failed=True condition without the FailureTarget=true condition"
        problems.append(invalid_without_value(_CONDITIONS, detail))
    if (
        _changed(status, before, "Complete", "SuccessCriteriaMet")
        and complete
        and not _true(status, "SuccessCriteriaMet")
    ):
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        problems.append(invalid_without_value(_CONDITIONS, detail))
    active = status.get("active", 0)
    if (ended or active != before.get("active", 0)) and active > 0 and finished:
        problems.append(invalid("status.active", active, "active>0 is invalid for finished job"))
    idle = spec.get("suspend") and spec.get("completions") == 0
    started = status.get("startTime")
    if (ended or started != before.get("startTime")) and not idle and started is None and finished:
        problems.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods")
    if (ended or uncounted != before.get("uncountedTerminatedPods")) and finished and uncounted:
        shown = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
        problems.append(invalid("status.uncountedTerminatedPods", shown, "must be empty for finished job"))
    return problems


def _indexes(spec: Tree, status: Tree, before: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    count = spec.get("completions")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    done_changed, failed_changed = done != before.get("completedIndexes", ""), failed != before.get("failedIndexes")
    per_index = spec.get("backoffLimitPerIndex")
    if done_changed and count is not None:
        wrong = count_indexes(done, count)[1]
        if wrong:
            problems.append(invalid("status.completedIndexes", done, f"error parsing completedIndexes: {wrong}"))
    if failed_changed and count is not None and per_index is not None and failed is not None:
        wrong = count_indexes(failed, count)[1]
        if wrong:
            problems.append(invalid("status.failedIndexes", failed, f"error parsing failedIndexes: {wrong}"))
    if done_changed and done and spec.get("completionMode") != "Indexed":
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        problems.append(invalid("status.completedIndexes", done, detail))
    if failed_changed and per_index is None and failed is not None:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        problems.append(invalid("status.failedIndexes", failed, detail))
    if (failed_changed or done_changed) and count is not None and failed is not None:
        both = _overlap(done, failed, count)
        if both is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {both}"
            problems.append(invalid("status.failedIndexes", failed, detail))
    return problems


def _overlap(done: str, failed: str, completions: int) -> int | None:
    """The first index in both texts, found as kube-apiserver does: it skips invalid intervals."""
    ours, theirs = _intervals(done, completions), _intervals(failed, completions)
    at, other = 0, 0
    while at < len(ours) and other < len(theirs):
        (first, last), (their_first, their_last) = ours[at], theirs[other]
        if their_first <= last and first <= their_last:
            return max(first, their_first)
        if first <= their_first:
            at += 1
        else:
            other += 1
    return None


def _intervals(text: str, completions: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for part in text.split(","):
        with suppress(ValueError):
            found.append(index_interval(part, completions))
    return found


def _criteria(spec: Tree, status: Tree) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    ready, active, leaving = status.get("ready"), status.get("active", 0), status.get("terminating")
    finished = _true(status, "Complete") or _true(status, "Failed")
    if leaving and finished:
        problems.append(invalid("status.terminating", leaving, "terminating>0 is invalid for finished job"))
    if ready is not None and ready > active:
        problems.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    met = _true(status, "SuccessCriteriaMet")
    for type_ in ("Failed", "FailureTarget"):
        if met and _true(status, type_):
            detail = f"cannot set SuccessCriteriaMet=True and {type_}=true conditions"
            problems.append(invalid_without_value(_CONDITIONS, detail))
    if spec.get("successPolicy") is not None and not met and _true(status, "Complete"):
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        problems.append(invalid_without_value(_CONDITIONS, detail))
    return problems


def _since(spec: Tree, status: Tree, before: Tree) -> list[FieldProblem]:
    """Earlier reports cannot be revoked."""
    problems = [
        invalid_without_value(_CONDITIONS, f"cannot disable the terminal {type_}=True condition")
        for type_ in ("Failed", "Complete", "FailureTarget")
        if _true(before, type_) and not _true(status, type_)
    ]
    scaled = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    problems += [
        invalid(f"status.{name}", status.get(name, 0), f"cannot decrease the {name} counter")
        for name in (("failed",) if scaled else ("failed", "succeeded"))
        if status.get(name, 0) < before.get(name, 0)
    ]
    done, was = status.get("completionTime"), before.get("completionTime")
    if done is not None and was is not None and done != was:
        problems.append(invalid("status.completionTime", done, "field is immutable"))
    started = before.get("startTime")
    resuming = _true(before, "Suspended") and not _true(status, "Suspended")
    if started is not None and started != status.get("startTime") and not spec.get("suspend") and not resuming:
        detail = "field is immutable for unsuspended job once set"
        problems.append(invalid("status.startTime", status.get("startTime"), detail))
    if _true(before, "SuccessCriteriaMet") and not _true(status, "SuccessCriteriaMet"):
        problems.append(invalid_without_value(_CONDITIONS, "cannot disable the SuccessCriteriaMet=True condition"))
    return problems
