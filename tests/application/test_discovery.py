"""Which files are found: those of a parent folder only if no other user could have put them there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steersman.application import ApplicationError, load_application

TEXT = "services:\n  web: {command: sleep 1}\n"
#: Another user of this machine.
OTHER = 61001
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder below a shared one."""
    made = tmp_path / "mine"
    made.mkdir()
    return made


def plant(path: Path, text: str = TEXT, owner: int = OTHER) -> Path:
    path.write_text(text, encoding="utf-8")
    os.chown(path, owner, owner)
    return path


def test_own_files_of_a_parent_folder_are_found(folder: Path) -> None:
    """Commands work in every folder of a project."""
    (folder.parent / "steersman.yaml").write_text(TEXT, encoding="utf-8")
    assert [*load_application(folder, environment={}).services] == ["web"]


@as_root
@pytest.mark.parametrize("name", ["steersman.yaml", "compose.yaml", "Procfile"])
def test_a_file_of_another_user_in_a_parent_folder_is_refused(name: str, folder: Path) -> None:
    """It would run programs as everyone who works below a shared folder."""
    file = plant(folder.parent / name, "web: sleep 1\n" if name == "Procfile" else TEXT)
    with pytest.raises(ApplicationError, match=rf"{name} belongs to another user \(uid {OTHER}\).* write -f "):
        load_application(folder, environment={})
    assert load_application(folder, files=[file], environment={}).services
    assert load_application(folder.parent, environment={}).services


@as_root
@pytest.mark.parametrize("name", ["steersman.override.yaml", ".env"])
def test_a_file_beside_it_is_refused(name: str, folder: Path) -> None:
    """An override replaces the command, and variables are part of it."""
    (folder.parent / "steersman.yaml").write_text(TEXT, encoding="utf-8")
    plant(folder.parent / name, TEXT if name.endswith("yaml") else "A=1\n")
    with pytest.raises(ApplicationError, match="belongs to another user"):
        load_application(folder, environment={})


@as_root
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    """The owner of a folder can replace any file in it."""
    (folder.parent / "steersman.yaml").write_text(TEXT, encoding="utf-8")
    os.chown(folder.parent, OTHER, OTHER)
    with pytest.raises(ApplicationError, match="belongs to another user"):
        load_application(folder, environment={})


@as_root
def test_a_link_of_another_user_is_refused(folder: Path) -> None:
    """Its target may be a file of mine that I never meant to run."""
    target = folder / "cloned.yaml"
    target.write_text(TEXT, encoding="utf-8")
    link = folder.parent / "steersman.yaml"
    link.symlink_to(target)
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    with pytest.raises(ApplicationError, match="belongs to another user"):
        load_application(folder, environment={})


@pytest.mark.parametrize("name", ["steersman.yaml", ".env"])
def test_a_file_that_every_user_can_write_is_refused_in_a_shared_folder(name: str, folder: Path) -> None:
    """Another user may have linked a lock file there, whose owner is root, and have written it."""
    (folder.parent / "steersman.yaml").write_text(TEXT, encoding="utf-8")
    lock = folder / "lock"
    lock.write_text(TEXT if name.endswith("yaml") else "A=1\n", encoding="utf-8")
    lock.chmod(0o666)
    (folder.parent / name).unlink(missing_ok=True)
    (folder.parent / name).hardlink_to(lock)
    assert load_application(folder, environment={}).services
    folder.parent.chmod(0o1777)
    with pytest.raises(ApplicationError, match=rf"every user can write .*{name}.* write -f "):
        load_application(folder, environment={})


@pytest.mark.parametrize(("mode", "place"), [(0o644, 0o777), (0o644, 0o1777), (0o666, 0o777), (0o666, 0o775)])
def test_a_hard_link_is_refused_where_other_users_can_make_one(mode: int, place: int, folder: Path) -> None:
    """It has the owner of its file, which may be a lock file, or the mail of this user."""
    mail = folder / "mail"
    mail.write_text(TEXT, encoding="utf-8")
    mail.chmod(mode)
    folder.parent.chmod(place)
    (folder.parent / "steersman.yaml").hardlink_to(mail)
    with pytest.raises(ApplicationError, match=r"(several hard links|every user can write).* write -f "):
        load_application(folder, environment={})
    folder.parent.chmod(0o755)
    assert load_application(folder, environment={}).services
    folder.parent.chmod(place)
    mail.unlink()
    assert load_application(folder, environment={}).services


@as_root
def test_root_runs_the_files_of_the_user_who_called_sudo(folder: Path) -> None:
    """That user could run anything as root."""
    plant(folder.parent / "steersman.yaml")
    assert load_application(folder, environment={"SUDO_UID": str(OTHER)}).services
    with pytest.raises(ApplicationError, match="belongs to another user"):
        load_application(folder, environment={"SUDO_UID": "61009"})


@pytest.mark.parametrize(
    ("folder", "project"),
    [
        ("a" * 200, f"{'a' * 54}-c2a908d9"),
        ("日本 語", "default"),
        ("-x y", "xy"),
        ("abc-", "abc"),
        ("b" * 63, "b" * 63),
    ],
)
def test_a_project_name_from_a_folder_is_a_valid_label(tmp_path: Path, folder: str, project: str):
    """Networks, containers and labels contain it."""
    place = tmp_path / folder
    place.mkdir()
    (place / "steersman.yaml").write_text("services: {web: {command: x}}")
    assert load_application(place, environment={}).name == project
