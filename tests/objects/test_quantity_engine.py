"""The engine prints quantities as we do."""

from __future__ import annotations

import json
from itertools import product

import pytest

from steersman.objects.quantity import Quantity
from steersman.testing import Engine, KubectlError

NUMBERS = [
    *("0", "00", "1", "01", "+1", "7", "8", "10", "100", "999", "1000", "1023", "1024", "1500", "2048", "1000000"),
    *("0.5", ".5", "5.", "1.5", "1.234", "1.500", "0.001", "1.0000000001", "0.0000000000001", "123456789.123456789123"),
    *("999999999999999999", "9223372036854775807", "9223372036854775808", "123456789012345678901"),
]
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
    "e0",
    "e3",
    "E5",
    "e-3",
    "E+7",
    "e-12",
]
# Past this Kubernetes drops the suffix and with it the value; there is nothing to agree with.
LARGEST = 10**21


def template(texts: list[str]) -> str:
    """An object that only holds quantities: one volume for each, with the text as its size limit."""
    volumes = [{"name": f"v{number}", "emptyDir": {"sizeLimit": text}} for number, text in enumerate(texts)]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    return json.dumps(
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "q"}, "template": {"spec": spec}}
    )


async def test_the_engine_prints_what_we_print(engine: Engine, namespace: str) -> None:
    texts = [number + suffix for number, suffix in product(NUMBERS, SUFFIXES)]
    texts = [text for text in texts if Quantity(text) < LARGEST]
    answer = await engine.kubectl(
        "create",
        "-n",
        namespace,
        "--dry-run=server",
        "--validate=ignore",
        "-o",
        "json",
        "-f",
        "-",
        stdin=template(texts),
    )
    volumes = json.loads(answer)["template"]["spec"]["volumes"]
    assert len(texts) > 500
    assert [(text, volume["emptyDir"]["sizeLimit"]) for text, volume in zip(texts, volumes, strict=True)] == [
        (text, Quantity(text).printed()) for text in texts
    ]


@pytest.mark.parametrize("garbage", ["1gi", "abc", "1..5", "1K"])
async def test_the_engine_refuses_what_we_refuse(engine: Engine, garbage: str) -> None:
    assert not Quantity(garbage).is_valid()
    with pytest.raises(KubectlError, match=r"quantit(y|ies)"):
        await engine.kubectl("create", "--dry-run=server", "--validate=ignore", "-f", "-", stdin=template([garbage]))
