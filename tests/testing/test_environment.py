from __future__ import annotations

from pathlib import Path

import pytest

from steersman.kinds.index import KUBERNETES
from steersman.testing import EngineError
from steersman.testing.engine.environment import Environment

MINOR = KUBERNETES.removeprefix("v").rpartition(".")[0]


def _program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return str(path)


def test_a_program_named_by_itself_comes_first_then_the_folder_then_the_cache(tmp_path) -> None:
    """The order is envtest's, with our own cache last."""
    variables = {"XDG_CACHE_HOME": str(tmp_path / "xdg")}
    cached = _program(tmp_path / "xdg" / "steersman" / "engine" / MINOR / "etcd")
    assert str(Environment.read(variables).program("etcd")) == cached
    chosen = _program(tmp_path / "chosen" / MINOR / "etcd")
    variables["STEERSMAN_ENGINE_CACHE"] = str(tmp_path / "chosen")
    assert str(Environment.read(variables).program("etcd")) == chosen
    asset = _program(tmp_path / "assets" / "etcd")
    variables["KUBEBUILDER_ASSETS"] = str(tmp_path / "assets")
    assert str(Environment.read(variables).program("etcd")) == asset
    alone = _program(tmp_path / "alone" / "my-etcd")
    variables["TEST_ASSET_ETCD"] = alone
    assert str(Environment.read(variables).program("etcd")) == alone


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd", "kubectl", "kube-controller-manager"])
def test_every_program_can_be_named(tmp_path, name) -> None:
    """There is one variable a program."""
    path = _program(tmp_path / "it")
    variable = f"TEST_ASSET_{name.upper().replace('-', '_')}"
    assert str(Environment.read({variable: path}).program(name)) == path


def test_programs_of_two_places_are_not_mixed(tmp_path) -> None:
    """A folder that lacks a program is an error, even if the cache has it: versions would differ."""
    _program(tmp_path / "cache" / MINOR / "etcd")
    (tmp_path / "assets").mkdir()
    environment = Environment.read(
        {"STEERSMAN_ENGINE_CACHE": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}
    )
    with pytest.raises(EngineError, match=r"program etcd not found at .*/assets/etcd \(\$KUBEBUILDER_ASSETS\)"):
        environment.program("etcd")


def test_a_version_comes_from_the_cache_whatever_the_variables_name(tmp_path) -> None:
    """A test that asks for a version gets that version, or a sentence that says how to build it."""
    older = _program(tmp_path / "1.34" / "etcd")
    variables = {
        "STEERSMAN_ENGINE_CACHE": str(tmp_path),
        "KUBEBUILDER_ASSETS": str(tmp_path / "assets"),
        "TEST_ASSET_ETCD": _program(tmp_path / "assets" / "etcd"),
    }
    assert str(Environment.read(variables, kubernetes="1.34").program("etcd")) == older
    with pytest.raises(EngineError, match=r"of Kubernetes 1\.35 not found .* `tools/engine/build --kubernetes 1\.35`"):
        Environment.read(variables, kubernetes="1.35").program("etcd")
    with pytest.raises(
        EngineError, match=r"'v1\.34\.10' is not a minor version of Kubernetes: write one such as 1\.35"
    ):
        Environment.read(variables, kubernetes="v1.34.10")
    with pytest.raises(EngineError, match=r"so Kubernetes 1\.34 cannot be chosen: unset the variable"):
        Environment.read({**variables, "USE_EXISTING_CLUSTER": "true"}, kubernetes="1.34")


def test_a_file_that_cannot_be_run_is_no_program(tmp_path) -> None:
    """Neither a plain file nor a folder will do."""
    (tmp_path / "etcd").touch(mode=0o644)
    (tmp_path / "kubectl").mkdir()
    environment = Environment.read({"KUBEBUILDER_ASSETS": str(tmp_path)})
    for name in ("etcd", "kubectl"):
        with pytest.raises(EngineError, match=r"program .* not found"):
            environment.program(name)


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 60), ("30s", 30), ("2m30s", 150), ("1.5h", 5400), ("250ms", 0.25), ("1m0.5s", 60.5)]
)
def test_time_outs_are_written_as_go_writes_them(text, seconds) -> None:
    """What people already have in their CI is understood."""
    variables = {"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": text}
    assert Environment.read(variables).start_timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["30", "soon", "-5s", "0s", "5s later"])
def test_a_time_out_that_is_none_is_refused(text) -> None:
    """A mistyped time-out is an error, not ignored."""
    with pytest.raises(EngineError, match=r"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT is '.*', which is not a duration"):
        Environment.read({"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": text})
