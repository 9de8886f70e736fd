"""Certificates from a process of their own: usable at once, and issued here if that process fails."""

import asyncio
import os
import sys

import pytest

from steersman import Client
from steersman.apiserver import ApiServer, CertificateProcess, serve
from steersman.client.configuration.discovery_order import discover_config
from steersman.kinds.core_v1 import Namespace


def program(folder, text):
    """A program in the place of Python."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def test_a_client_trusts_the_certificates_of_the_process(tmp_path):
    """A session of ``steersman up`` serves with them."""
    async with (
        CertificateProcess() as process,
        serve(ApiServer(kinds=["v1"]), folder=tmp_path, token="secret", certificates=process.issued) as served,
        Client.connect(discover_config(kubeconfig=str(served.kubeconfig))) as client,
    ):
        assert [each.key.name for each in await client.list(Namespace)]
    assert [file.name for file in tmp_path.iterdir()] == ["kubeconfig"], "the authority's key is on no disk"


@pytest.mark.parametrize("failing", ["exit 1", None])
async def test_this_process_issues_the_certificates_if_the_other_one_fails(tmp_path, monkeypatch, failing):
    """Memory is the only loss."""
    monkeypatch.setattr(sys, "executable", program(tmp_path, failing) if failing else str(tmp_path / "missing"))
    async with CertificateProcess() as process:
        issued = await process.issued()
    assert b"BEGIN CERTIFICATE" in issued.authority
    assert b"BEGIN PRIVATE KEY" in issued.server.key
    assert issued.server.key.decode() not in repr(issued)


async def test_a_process_that_is_not_needed_ends_with_its_block(tmp_path, monkeypatch):
    """A start that fails leaves no process behind."""
    monkeypatch.setattr(sys, "executable", program(tmp_path, f"echo $$ >{tmp_path}/pid; exec sleep 1000"))
    os.mkfifo(tmp_path / "pid")
    async with asyncio.timeout(30), CertificateProcess():
        pid = int(await asyncio.to_thread((tmp_path / "pid").read_text))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_certificates_without_a_token_are_refused(tmp_path):
    """Their authority cannot issue the administrator's client certificate."""
    async with CertificateProcess() as process:
        with pytest.raises(ValueError, match="needs a token"):
            async with serve(ApiServer(kinds=["v1"]), folder=tmp_path, certificates=process.issued):
                pass
