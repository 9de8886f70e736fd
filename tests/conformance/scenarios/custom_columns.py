"""Columns of custom resources: what a JSONPath finds, how it is printed, and paths that cannot be parsed."""

from __future__ import annotations

from typing import Any

from conformance.boats import ANYTHING, BOATS, CRD, CRDS, TABLE, Tree, boat, crd, installed, obj, version
from conformance.scenario import Close, Until, delete, frames, get, post, scenario, watch

SPEC: Tree = {
    "name": "sloop", "masts": 2, "nothing": None, "fast": True, "speed": 1.5, "cost": 1234567.5, "": {"": "blank"}, "empty": [],
    "sails": [{"color": "red", "area": 3, "on": True}, {"color": "blue", "area": 12}, {"area": 1.5}, {"color": None}],
    "crew": {"mate": "Kim"}, "marks": ["<a>", "b & c"], "grid": [[1, 2], [3, 4]], "deep": {"down": {"depth": 7}},
    "log": [{"text": "it's \"so\""}, {"text": "a)b"}], "one": [{"a": {"b": "c"}}], "two": [None, {"a": 1}],
}  # fmt: skip

#: Paths to what has no name, to parts of lists, to what is missing, and to what cannot be followed.
FOUND = [
    ".", ".[*]", "['spec']", ".['spec'].name", ".spec['']", ".spec[''][''].x", ".spec['']['']", ".spec.[''].", ".spec.['name']",
    ".spec.sails.[*].color", ".spec.sails[*].color", ".spec.sails[].color", ".spec.sails[1].color", ".spec.sails[-3].color",
    ".spec.sails[-1].color", ".spec.sails[4].color", ".spec.sails[-5].color", ".spec.sails[:].color", ".spec.sails[1:].color",
    ".spec.sails[:-3].color", ".spec.sails[2:1].color", ".spec.sails[1:1].color", ".spec.sails[1:9].color",
    ".spec.sails[::2].color", ".spec.sails[1::-1].color", ".spec.sails[0,1].color", ".spec.sails[ 1 , 0 ].color",
    ".spec['masts','name']", ".spec['name',0]", ".spec.crew[0]", ".spec.crew[*]", ".spec.crew.*", ".spec.name[0]",
    ".spec.masts.*", ".spec.empty[*]", ".spec.empty[0]", ".spec.nothing", ".spec.nothing.x", ".spec.nothing[0]",
    ".spec.nothing[*]", ".spec.missing[0]", ".spec.missing.x", ".spec.two[*].a", ".spec.grid[*][1]", ".spec.grid[1]",
    ".spec.deep..depth", ".spec.deep..[0]", ".spec.deep..missing", ".spec.deep...depth", ".spec.marks", ".spec.marks[0]",
    ".spec.cost", ".spec.speed", ".spec.fast", ".spec.sails", ".spec.crew", ".spec.deep",
]  # fmt: skip
FILTERS = [
    "@.color", "@.missing", "@.on", "@.color=='blue'", '@.color == "blue"', "@.color!='red'", "@.color>'c'", "@.color=='x'",
    "@.area==12", "@.area==12.0", "@.area>5", "@.area<5", "@.area>=3", "@.area<=3", "@.on==true", "@.on!=true", "@.on<true",
    "@.color===1", "@.area=12", "@", "@.*",
    "@.area[0]", "@.color==@.color", "@.area==true", "true", "1==1", "'a'=='a'", "1", "@.color==nil", "$.area==12",
]  # fmt: skip
QUOTED = ['@.text=="it\'s \\"so\\""', "@.text=='it\\'s \"so\"'", "@.text=='a)b'", '@.text=="a)b"', "@.text=='a\\x29b'"]
WORDS = [
    ".spec.name 'text'", ".spec 5", ".spec -1.5", ".spec true", ".spec range", ".spec end", ".spec.name}text",
    ".spec.name}{.spec.crew[0]", ".spec.name}{.spec.masts", ".spec @.name", ".spec $.name", ".spec.one[*].a.b", ".spec.a\\}b",
    ".spec. name", ".spec.name ", ".spec.name.", ".spec.name..", ".spec.sails[0].*.x", ".spec 'a\\u0062\\n'",
    ".spec%", ".spec.sails[?()]x(",
]  # fmt: skip
#: kube-apiserver accepts these definitions and shows the columns before the path.
BROKEN = [
    ".spec[", ".spec]", ".spec.sails[x]", ".spec.sails[-]", ".spec.sails[1:2:3:4]", ".spec.sails[99999999999999999999]",
    ".spec.sails[0,x]", ".spec['a[b']", ".spec,name", ".spec\tname", ".spec....name", ".spec..*", ".spec{", ".spec.name\\",
    ".spec 1.2.3", ".spec +", ".spec 'text", ".spec 'a\\q'", ".spec.sails[?(@.a]", ".spec.sails[?(@.a)",
    ".spec.sails[?(@.a=~'b')]", ".spec.sails[?(@.a=='b'||@.c)]", ".spec.sails[?(@.a==)]", ".spec.sails[?(@.a=='b)]", ".spec.name}{.spec[", ".spec\n.name", ".spec *", '.spec["a"]',
]  # fmt: skip


def column(path: str, type_: str = "string", name: str = "") -> Tree:
    return {"name": name or path, "type": type_, "jsonPath": path}


def shown(name: str, paths: list[str], **more: Any) -> Any:
    """A table with a column for each path."""
    columns = [column(path if path.startswith(".") else f".spec{path}", **more) for path in paths]
    schema = obj(spec=ANYTHING)
    return scenario(
        name, "Table", installed(version(schema=schema, additionalPrinterColumns=columns)), post(BOATS, boat("a", spec=SPEC)),
        get(BOATS, accept=TABLE),
    )  # fmt: skip


SCENARIOS = [
    scenario(
        "of-definitions", "Kinds, Table",
        post(CRDS, crd(scope="Cluster"), dryRun="All", accept=TABLE),
        post(CRDS, crd(version(), version("v2", storage=False), version("v1beta1", storage=False, served=False), names={"shortNames": ["bo", "bt"]}), focus=lambda tree: tree["kind"]),
        Until(get(BOATS), 200), get(CRD, accept=TABLE), delete(CRD, focus=lambda tree: tree["kind"]),
        get(CRDS, fieldSelector="metadata.name=none", accept=TABLE),
    ),
    *(
        scenario(
            f"last-{type_}-column-named-{name.lower().replace(' ', '-')}", "Table, Bookmarks",
            installed(version(schema=obj(spec=ANYTHING), additionalPrinterColumns=[column(".spec.name", type_, name)])),
            get(BOATS, accept=TABLE), watch("w", BOATS, accept=TABLE, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"),
            frames("w", 1), post(BOATS, boat("a", spec=SPEC)), get(BOATS, accept=TABLE), frames("w", 1), Close("w"),
        )
        for name, type_ in (("Created At", "string"), ("Created At", "date"), ("Age", "string"))
    ),
    shown("paths", FOUND),
    shown("filters", [f".spec.sails[?({each})]" for each in FILTERS]),
    shown("filters-of-a-map", [f".spec.crew[?({each})]" for each in FILTERS[:3]]),
    shown("filters-of-nothing", [f".spec.{name}[?(@.a)]" for name in ("nothing", "missing", "empty", "two")]),
    shown("filters-with-quotes", [f".spec.log[?({each})].text" for each in QUOTED]),
    shown("words", WORDS),
    *(
        shown(f"{type_}-columns", [f".spec.{name}" for name in SPEC if name], type_=type_)
        for type_ in ("integer", "number", "boolean", "date")
    ),
    # One version for each path, so that one definition shows all of them.
    scenario(
        "broken", "Table",
        installed(
            version(),
            version("v1beta1", storage=False, additionalPrinterColumns=[column(".spec[")]),
            *(
                version(
                    f"v{number}", storage=False,
                    additionalPrinterColumns=[column(".spec.name", name="A"), column(path, name="B"), column(".spec.masts", name="C")],
                )
                for number, path in enumerate(BROKEN, 2)
            ),
        ),
        post(BOATS, boat("a", spec=SPEC)),
        get(BOATS.replace("/v1/", "/v1beta1/"), accept=TABLE),
        *(get(BOATS.replace("/v1/", f"/v{number}/"), accept=TABLE) for number, _ in enumerate(BROKEN, 2)),
    ),
]  # fmt: skip
