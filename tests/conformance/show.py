"""Prints what the engine answered, from a recording: ``PYTHONPATH=tests python -m conformance.show FILE [PATTERN]``.

A scenario whose name holds PATTERN is printed with its requests and the answers as they are compared.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from conformance.catalog import all_scenarios
from conformance.recording import Recording
from conformance.report import describe_step


def shown(answer: Any) -> list[str]:
    """An answer in a few lines."""
    if not isinstance(answer, dict) or "status" not in answer:
        return [json.dumps(frame, ensure_ascii=False) for frame in answer.get("frames", [])] or [json.dumps(answer)]
    lines = [f"{answer['status']} {json.dumps(answer['headers'])}"]
    if "body" in answer:
        lines.append(json.dumps(answer["body"], ensure_ascii=False))
    return lines


def main(file: str, pattern: str = "") -> None:
    """Print the scenarios of a recording."""
    recording = Recording.read(Path(file))
    for scenario in all_scenarios():
        if pattern not in scenario.name:
            continue
        try:
            answers = recording.play(scenario).answers
        except LookupError as error:
            print(error)  # noqa: T201 - a program that prints
            continue
        print(f"== {scenario.name}")  # noqa: T201
        for index, step in enumerate(scenario.steps):
            print(f"{index:3}   {describe_step(step)}")  # noqa: T201
            for line in shown(answers[index]):
                print(f"    < {line}")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
