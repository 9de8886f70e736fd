"""The command line of a build: what other users of the machine can read of it."""

from __future__ import annotations

import pytest

from steersman.workloads.containers.arguments import build_arguments, build_variables
from steersman.workloads.containers.runner import ContainerRuntimeError, ImageBuild


def build(**args: str) -> ImageBuild:
    return ImageBuild(context="/shop", tags=("shop:latest",), args=args)


def test_the_value_of_a_build_argument_is_in_no_argument() -> None:
    """Every user reads the process list, and tokens of package registries are build arguments."""
    found = build(NPM_TOKEN="npm_s3cr3t", VERSION="1\n2", GOPROXY="https://user:s3cr3t@proxy")
    words = [*build_arguments(found)]
    assert "s3cr3t" not in " ".join(words)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--build-arg"] == [
        "NPM_TOKEN",
        "VERSION",
        "GOPROXY",
    ]
    assert build_variables(found) == found.args


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "DOCKER_HOST", "HOME", "BUILDAH_ISOLATION", "XDG_RUNTIME_DIR"])
def test_a_build_argument_does_not_change_the_command(name: str) -> None:
    """As a variable it would choose the programs, the server or the files of the build command."""
    found = build(**{name: "/evil"})
    assert build_variables(found) == {}
    assert f"{name}=/evil" in [*build_arguments(found)]


def test_a_secret_with_the_name_of_a_setting_is_refused() -> None:
    """It could be passed only where others read it."""
    with pytest.raises(ContainerRuntimeError, match="DOCKER_PASSWORD looks like a secret"):
        build_variables(build(DOCKER_PASSWORD="hunter2"))


def test_a_proxy_is_passed_on_unless_it_has_a_password() -> None:
    """The command itself must not use the proxy of a build, but a password must not be read by others."""
    assert build_variables(build(HTTP_PROXY="http://proxy:3128")) == {}
    assert [*build_arguments(build(HTTP_PROXY="http://proxy:3128"))][2:4] == [
        "--build-arg",
        "HTTP_PROXY=http://proxy:3128",
    ]
    secret = "http://user:hunter2@proxy:3128"
    assert build_variables(build(https_proxy=secret)) == {"https_proxy": secret}
    assert "hunter2" not in " ".join(build_arguments(build(https_proxy=secret)))


def test_an_argument_without_a_value_comes_from_the_environment() -> None:
    """As in Compose: the value is that of the shell."""
    found = build(CI="")
    assert "--build-arg CI" in " ".join(build_arguments(found))
    assert build_variables(found) == {}


def test_an_argument_cannot_replace_a_secret() -> None:
    """Both would need the same variable."""
    found = ImageBuild(context="/", tags=("t",), args={"TOKEN": "a"}, env={"TOKEN": "b"})
    with pytest.raises(ContainerRuntimeError, match="rename it"):
        build_variables(found)
