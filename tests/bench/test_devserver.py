"""The benchmark beside tilt-apiserver: its objects are valid here, and its page has every figure."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.devserver import OURS, TILT, Measured
from bench.devserver_load import executable, status
from bench.report import Figure, Report
from bench.report_page import fill_page
from steersman.objects import decode
from steersman.schemas import validate
from steersman.workloads.kinds import Executable

ROOT = Path(__file__).parents[2]


def test_the_objects_of_the_load_are_valid() -> None:
    document = executable(7) | {"status": status(7, 3)}
    read = decode(Executable, msgspec.json.encode(document))
    validate(read)
    assert read.status is not None
    assert read.status.state == "Running"
    assert len(read.spec.env or ()) == 12


def test_ratios_are_formed_within_a_round() -> None:
    measured = Measured("CPU of a create", "us", rounds={OURS: [10.0, 40.0, 9.0], TILT: [10.0, 20.0, 3.0]})
    assert measured.bar().value == 2.0


def test_a_report_fills_its_place_in_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8"), encoding="utf-8")
    measured = Measured("CPU of a create", "us", rounds={OURS: [10.0], TILT: [20.0]})
    for name in ("devserver", "executables", "workloads"):
        columns = (measured.column(),) if name == "devserver" else ()
        figures = (Figure(name="imports", value=123.0, unit="ms"),)
        fill_page(page, Report(name=name, bars=(measured.bar(),), columns=columns, figures=figures))
    text = page.read_text(encoding="utf-8")
    assert "| CPU of a create, us | 10 | 20 |" in text
    assert text.count("| CPU of a create / tilt-apiserver | 0.500 x | 1.50 x | holds |") == 3
    assert text.count("| imports | 123 ms |") == 3
