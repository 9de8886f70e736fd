"""Jobs and CronJobs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steersman.apiserver.registry.builtin.pods.defaults import fill_template
from steersman.apiserver.registry.builtin.pods.validation import pod_template
from steersman.apiserver.registry.builtin.pods.warnings import name_warnings, template_warnings
from steersman.apiserver.registry.builtin.strategy import BuiltinStrategy
from steersman.apiserver.registry.builtin.types.formats import MAX_INT32, http_path
from steersman.apiserver.registry.builtin.types.internal_form import printed
from steersman.apiserver.registry.builtin.types.labels import compiled, label_selector
from steersman.apiserver.registry.builtin.types.trees import Tree, inner, items, metadata, subtree, take
from steersman.apiserver.registry.builtin.workloads.cron_schedule import schedule_problem, zone_problem
from steersman.apiserver.registry.builtin.workloads.job_policies import (
    failure_policy,
    replacement_policy,
    success_policy,
)
from steersman.apiserver.registry.builtin.workloads.job_status import job_status
from steersman.apiserver.registry.strategy import CHANGED
from steersman.objects import Selector
from steersman.objects.field_problems import (
    FieldProblem,
    each,
    invalid,
    not_negative,
    required,
    too_long,
    unchanged,
    unsupported,
)
from steersman.schemas.names import dns_label, dns_subdomain

_NAMES = ("job-name", "batch.kubernetes.io/job-name")
_UIDS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_MISMATCH = "`selector` does not match template `labels`"
_INDEXED_MOST = 100_000
_HIGH_MOST = 10_000
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_LONGEST_MANAGER = 63
_LONGEST_CRON_NAME = 52


def fill_job(spec: Tree) -> None:
    """Fill in the defaults of a Job; the template of a CronJob does not get them."""
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)


def _fill_patterns(spec: Tree) -> None:
    for rule in items(inner(spec, "podFailurePolicy"), "rules"):
        for pattern in items(rule, "onPodConditions"):
            pattern["status"] = pattern.get("status") or "True"


class JobStrategy(BuiltinStrategy):
    """How Jobs behave."""

    counts_generations = True
    default_propagation = "orphan"

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        # A disabled feature.
        spec.pop("scheduling", None)
        fill_job(spec)
        _fill_patterns(spec)
        own = subtree(spec, "template", "metadata").get("labels")
        if own and not metadata(obj).get("labels"):
            metadata(obj)["labels"] = dict(own)
        fill_template(spec["template"])

    def prepare_create(self, obj: Tree) -> None:
        """Generate a unique selector, unless one is given."""
        super().prepare_create(obj)
        spec: Tree = obj["spec"]
        if spec["manualSelector"]:
            return
        meta, name, uid = metadata(spec["template"]), metadata(obj).get("name", ""), metadata(obj).get("uid", "")
        made = dict.fromkeys(_NAMES, name) | dict.fromkeys(_UIDS, uid)
        given = inner(meta, "labels")
        meta["labels"] = made | given
        # A Job with its template's labels also gets these.
        if given and metadata(obj).get("labels") == given:
            metadata(obj)["labels"] = dict(meta["labels"])
        selector: Tree = dict(inner(spec, "selector"))
        selector["matchLabels"] = {_UIDS[1]: uid} | inner(selector, "matchLabels")
        spec["selector"] = selector

    def complete(self, obj: Tree) -> None:
        """Give a Job without labels those of its template, including generated ones."""
        if not metadata(obj).get("labels"):
            metadata(obj)["labels"] = dict(inner(subtree(obj, "spec", "template", "metadata"), "labels"))

    def is_unfinished(self, obj: Tree) -> bool:
        """Whether decoding fills in labels, because all of them were generated."""
        own = metadata(obj).get("labels", {})
        return own.keys() == {*_NAMES, *_UIDS} and own == subtree(obj, "spec", "template", "metadata", "labels")

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        return _generated(obj) + job_with_selector(subtree(obj, "spec")) + _pod_names(obj)

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        """The template is immutable, and so are most fields that decide when the Job is done."""
        spec, before = subtree(obj, "spec"), subtree(old, "spec")
        problems = [CHANGED, *job_with_selector(spec), *_completions(spec, before)]
        problems += unchanged("spec.selector", spec.get("selector"), before.get("selector"))
        problems += _same_template(spec, before, old)
        problems += unchanged("spec.completionMode", spec.get("completionMode"), before.get("completionMode"))
        for name, type_ in (("podFailurePolicy", "*batch.PodFailurePolicy"), ("backoffLimitPerIndex", "*int")):
            new, was = spec.get(name), before.get(name)
            problems += unchanged(f"spec.{name}", new, was, printed=printed(new, type_))
        problems += unchanged("spec.managedBy", spec.get("managedBy"), before.get("managedBy"))
        new, was = spec.get("successPolicy"), before.get("successPolicy")
        problems += unchanged("spec.successPolicy", new, was, printed=printed(new, "*batch.SuccessPolicy"))
        return problems + _pod_names(obj)

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        if old is not None and subtree(obj, "spec") == subtree(old, "spec"):
            return []
        named = name_warnings(obj) if old is None else []
        return named + template_warnings("spec.template", subtree(obj, "spec", "template"))

    def validate_status(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return job_status(obj, old)


def _pod_names(obj: Tree) -> list[FieldProblem]:
    """The name and the number of an indexed Pod must fit into a label."""
    spec, name = subtree(obj, "spec"), metadata(obj).get("name", "")
    count = spec.get("completions")
    if spec.get("completionMode") != "Indexed" or count is None or count <= 0:
        return []
    last = f"{name}-{count - 1}"
    detail = f"will not able to create pod with invalid DNS label: {last}"
    return [invalid("metadata.name", name, detail)] if dns_label(last) else []


def _generated(obj: Tree) -> list[FieldProblem]:
    """A generated selector must be unchanged."""
    spec, meta = subtree(obj, "spec"), metadata(obj)
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    name, uid = meta.get("name", ""), meta.get("uid", "")
    problems = [] if uid else [required("metadata.uid")]
    own = inner(subtree(spec, "template", "metadata"), "labels")
    expected: dict[str, str] = {}
    for position in (0, 1):
        expected |= {_UIDS[position]: uid, _NAMES[position]: name}
    for key, value in expected.items():
        where = f"spec.template.metadata.labels[{key}]"
        if key not in own:
            problems.append(required(where, f"must be '{value}'"))
        elif own[key] != value:
            problems.append(invalid(where, own, f"must be '{value}'"))
    matcher = compiled(spec["selector"])
    if matcher is not None and not matcher.matches(expected):
        problems.append(invalid("spec.selector", spec["selector"], "`selector` not auto-generated"))
    return problems


def job_with_selector(spec: Tree) -> list[FieldProblem]:
    """Validate the spec of a Job, whose selector must select its Pods."""
    problems = job_spec("spec", spec)
    selector = spec.get("selector")
    problems += [required("spec.selector")] if selector is None else label_selector("spec.selector", selector)
    matcher: Selector | None = compiled(selector)
    own = subtree(spec, "template", "metadata").get("labels")
    if matcher is not None and not matcher.matches(own or {}):
        problems.append(invalid("spec.template.metadata.labels", own, _MISMATCH))
    return problems


def job_spec(path: str, spec: Tree) -> list[FieldProblem]:
    """Validate the spec of a Job without its selector."""
    problems: list[FieldProblem] = []
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    for name in (*numbers, "backoffLimitPerIndex", "maxFailedIndexes"):
        problems += not_negative(f"{path}.{name}", spec.get(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        problems.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    problems += _manager(f"{path}.managedBy", spec.get("managedBy")) + _completion_mode(path, spec)
    if spec.get("podFailurePolicy") is not None:
        problems += failure_policy(f"{path}.podFailurePolicy", spec)
    if spec.get("successPolicy") is not None:
        problems += success_policy(f"{path}.successPolicy", spec)
    problems += replacement_policy(f"{path}.podReplacementPolicy", spec)
    template: Tree = inner(spec, "template")
    problems += pod_template(f"{path}.template", template)
    return problems + _restart(f"{path}.template.spec.restartPolicy", spec, subtree(template, "spec"))


def _restart(path: str, spec: Tree, pod: Tree) -> list[FieldProblem]:
    policy = pod.get("restartPolicy", "")
    if policy in {"Always", ""}:
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in {"OnFailure", "Never"}:
        return [unsupported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _manager(path: str, manager: str | None) -> list[FieldProblem]:
    if manager is None:
        return []
    problems: list[FieldProblem] = []
    domain, _, rest = manager.partition("/")
    if not manager:
        problems.append(required(path))
    elif not domain or not rest:
        problems.append(invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    else:
        problems += each(path, domain, dns_subdomain(domain)) + each(path, rest, http_path(rest))
    return problems + ([too_long(path, _LONGEST_MANAGER)] if len(manager.encode()) > _LONGEST_MANAGER else [])


def _completion_mode(path: str, spec: Tree) -> list[FieldProblem]:
    mode, count, at_once = spec.get("completionMode"), spec.get("completions"), spec.get("parallelism")
    per_index, failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    problems: list[FieldProblem] = []
    if mode not in {None, "NonIndexed", "Indexed"}:
        problems.append(unsupported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        problems += _indexed(path, count, at_once, failed)
        if count is not None and count > _INDEXED_MOST and per_index is not None:
            problems += _high_completions(path, at_once, failed)
    elif mode in {None, "NonIndexed"}:
        given = (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed))
        detail = "requires indexed completion mode"
        problems += [invalid(f"{path}.{name}", value, detail) for name, value in given if value is not None]
    return problems


def _indexed(path: str, count: int | None, at_once: int | None, failed: int | None) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    if count is None:
        problems.append(required(f"{path}.completions", "when completion mode is Indexed"))
    if at_once is not None and at_once > _INDEXED_MOST:
        detail = f"must be less than or equal to {_INDEXED_MOST} when completion mode is Indexed"
        problems.append(invalid(f"{path}.parallelism", at_once, detail))
    if count is not None and failed is not None and failed > count:
        problems.append(invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions"))
    if failed is not None and failed > _INDEXED_MOST:
        detail = f"must be less than or equal to {_INDEXED_MOST}"
        problems.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    return problems


def _high_completions(path: str, at_once: int | None, failed: int | None) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    detail = (
        f"must be less than or equal to {_HIGH_MOST} when completions are above {_INDEXED_MOST} and used with backoff "
        "limit per index"
    )
    if failed is None:
        problems.append(
            required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_INDEXED_MOST}")
        )
    if at_once is not None and at_once > _HIGH_MOST:
        problems.append(invalid(f"{path}.parallelism", at_once, detail))
    if failed is not None and failed > _HIGH_MOST:
        problems.append(invalid(f"{path}.maxFailedIndexes", failed, detail))
    return problems


def _completions(spec: Tree, before: Tree) -> list[FieldProblem]:
    new, was = spec.get("completions"), before.get("completions")
    if spec.get("completionMode") != "Indexed":
        return unchanged("spec.completions", new, was, printed=printed(new, "*int"))
    if new in {was, None} or new == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _same_template(spec: Tree, before: Tree, old: Tree) -> list[FieldProblem]:
    template, was = spec["template"], before["template"]
    if template == was:
        return []
    suspended = bool(before.get("suspend"))
    conditions = {one.get("type"): one.get("status") for one in items(subtree(old, "status"), "conditions")}
    started = subtree(old, "status").get("startTime") is not None
    idle = not subtree(old, "status").get("active")
    open_ = suspended and idle and (not started or conditions.get("Suspended") == "True")
    if open_:
        was = was | {"metadata": dict(inner(was, "metadata")), "spec": dict(was["spec"])}
        _follow_scheduling(template, was)
        for field in ("containers", "initContainers"):
            news, olds = items(template["spec"], field), items(was["spec"], field)
            if field in was["spec"] and len(news) == len(olds):
                was["spec"][field] = [_with_resources(one, new) for one, new in zip(olds, news, strict=True)]
        if template["spec"] == was["spec"]:
            return []
        shown = printed(template["spec"], "core.PodSpec")
        return unchanged("spec.template.spec", template["spec"], was["spec"], printed=shown)
    return unchanged("spec.template", template, was, printed=printed(template, "core.PodTemplateSpec"))


def _with_resources(was: Tree, new: Tree) -> Tree:
    return was | {"resources": new["resources"]} if new.get("name") == was.get("name") else was


def _follow_scheduling(template: Tree, was: Tree) -> None:
    """Scheduling fields may change while no Pod has started."""
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        take(was["spec"], template["spec"], name)
    for name in ("annotations", "labels"):
        take(metadata(was), metadata(template), name)
    affinity: Mapping[str, Any] = inner(template["spec"], "affinity")
    kept = {name: value for name, value in inner(was["spec"], "affinity").items() if name != "nodeAffinity"}
    if "nodeAffinity" in affinity:
        kept["nodeAffinity"] = affinity["nodeAffinity"]
    if kept or "affinity" in template["spec"]:
        was["spec"]["affinity"] = kept
    else:
        was["spec"].pop("affinity", None)


class CronJobStrategy(BuiltinStrategy):
    """How CronJobs behave."""

    declared_fields = re.compile(r"spec\.schedule")

    counts_generations = True
    judges_metadata_of_status = False

    def fill(self, obj: Tree) -> None:
        spec: Tree = obj["spec"]
        spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job: Tree = spec["jobTemplate"]["spec"]
        # A disabled feature.
        job.pop("scheduling", None)
        _fill_patterns(job)
        fill_template(job["template"])

    def validate_create(self, obj: Tree) -> list[FieldProblem]:
        """Validate the spec, and the name, which prefixes the names of Jobs."""
        problems = _cron("spec", subtree(obj, "spec"), None)
        name = metadata(obj).get("name", "")
        if len(name.encode()) > _LONGEST_CRON_NAME:
            problems.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters"))
        return problems

    def warnings(self, obj: Tree, old: Tree | None) -> list[str]:
        if old is not None and subtree(obj, "spec") == subtree(old, "spec"):
            return []
        path = "spec.jobTemplate.spec.template"
        named = name_warnings(obj) if old is None else []
        return named + template_warnings(path, subtree(obj, *path.split(".")))

    def validate_update(self, obj: Tree, old: Tree) -> list[FieldProblem]:
        return _cron("spec", subtree(obj, "spec"), subtree(old, "spec"))


def _cron(path: str, spec: Tree, before: Tree | None) -> list[FieldProblem]:
    schedule, zone = spec.get("schedule", ""), spec.get("timeZone")
    problems = _schedule(f"{path}.schedule", schedule, zone, before) if schedule else [required(f"{path}.schedule")]
    problems += not_negative(f"{path}.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    if before is None or before.get("timeZone") != zone:
        problems += _zone(f"{path}.timeZone", zone)
    policy = spec.get("concurrencyPolicy", "")
    if policy not in _CONCURRENCY:
        problems.append(unsupported(f"{path}.concurrencyPolicy", policy, _CONCURRENCY))
    job: Tree = subtree(spec, "jobTemplate", "spec")
    where = f"{path}.jobTemplate.spec"
    problems += job_spec(where, job)
    if job.get("selector") is not None:
        problems.append(invalid(f"{where}.selector", job["selector"], "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        problems.append(unsupported(f"{where}.manualSelector", True, ("nil", "false")))
    for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        problems += not_negative(f"{path}.{name}", spec.get(name))
    return problems


def _schedule(path: str, schedule: str, zone: str | None, before: Tree | None) -> list[FieldProblem]:
    wrong = schedule_problem(schedule)
    problems = [invalid(path, schedule, wrong)] if wrong else []
    if "TZ" in schedule:
        if before is None or "TZ" not in before.get("schedule", ""):
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            problems.append(invalid(path, schedule, detail))
        elif zone is not None:
            detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
            problems.append(invalid(path, schedule, detail))
    return problems


def _zone(path: str, zone: str | None) -> list[FieldProblem]:
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    for part in zone.split("/"):
        if part in {".", ".."} or part.startswith("-") or not re.fullmatch(r"[A-Za-z.\-_0-9+]{1,14}", part):
            return [invalid(path, zone, f"unknown time zone {zone}")]
    problems: list[FieldProblem] = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        problems.append(invalid(path, zone, detail))
    wrong = zone_problem(zone)
    return [*problems, invalid(path, zone, wrong)] if wrong else problems
