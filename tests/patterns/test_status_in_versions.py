"""A release that reconciles a new version of its kind keeps what the release before wrote in the status under other names."""

from __future__ import annotations

from typing import Any

from steersman import Done, Manager, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.client import extract_applied
from steersman.objects import UNSET
from steersman.patterns import Outputs, reconciles
from steersman.testing import eventually
from steersman.webhooks import VersionConverter

GROUP = "mail.test.steersman.dev"


class MailSpec(Spec):
    to: str = "ada"


class OldMailStatus(Status):
    sent_by: str | None = None
    number: int | None = None


class MailStatus(Status):
    sender: str | None = None
    number: int | None = None
    #: Written by another program.
    read_by: str | None = None


class Mail(Resource[MailSpec, MailStatus], group=GROUP, version="v1", storage=True):
    """A mail."""


class OldMail(
    Resource[MailSpec, OldMailStatus], group=GROUP, version="v1alpha1", kind="Mail", plural="mails", storage=False
):
    """A mail as it was before."""


def upgraded(old: OldMail) -> Mail:
    known: Any = old.status and MailStatus(
        conditions=old.status.conditions,
        observed_generation=old.status.observed_generation,
        sender=old.status.sent_by,
        number=old.status.number,
    )
    return Mail(metadata=old.metadata, spec=old.spec, status=known)


def downgraded(mail: Mail) -> OldMail:
    known: Any = mail.status and OldMailStatus(
        conditions=mail.status.conditions,
        observed_generation=mail.status.observed_generation,
        sent_by=mail.status.sender,
        number=mail.status.number,
    )
    return OldMail(metadata=mail.metadata, spec=mail.spec, status=known)


def release(operator: Any) -> Manager:
    manager = Manager(name="mails")
    manager.add(VersionConverter(OldMail, Mail, to_hub=upgraded, to_spoke=downgraded))
    manager.add(operator)
    return manager


async def test_what_is_recorded_once_stays_under_its_new_name(plane):
    """Otherwise the new release sends every mail again."""
    sent: list[str] = []

    @reconciles(OldMail, name="mail")
    async def first(mail: OldMail, out: Outputs) -> Done:
        status = mail.ensure_status()
        if status.sent_by is None:
            sent.append("first")
            status.sent_by, status.number = "first", 1
        return Done()

    @reconciles(Mail, name="mail")
    async def second(mail: Mail, out: Outputs) -> Done:
        status = mail.ensure_status()
        if status.sender is None:
            sent.append("second")
            status.sender = "second"
        if mail.spec.to == "eve":
            status.number = None
        return Done()

    client = plane.client
    async with plane.running(release(first)):
        await client.create(Mail(metadata=ObjectMeta(name="hello"), spec=MailSpec()))
        await eventually(client, Mail, "hello", has={"status": {"observedGeneration": 1, "sender": "first"}})
        reader = plane.client_with(field_manager="reader")
        await reader.apply(
            Mail.only(metadata=ObjectMeta(name="hello"), status=MailStatus(read_by="bob")), subresource="status"
        )
        mine = extract_applied(await client.get(Mail, "hello"), manager="mails/mail", subresource="status")
        assert (mine.status.sender, mine.status.number, mine.status.read_by) == ("first", 1, UNSET)
    async with plane.running(release(second)) as operator:
        for generation, to in ((2, "bob"), (3, "cid"), (4, "eve")):
            await client.patch(Mail, "hello", MergePatch({"spec": {"to": to}}))
            await eventually(client, Mail, "hello", has={"status": {"observedGeneration": generation}})
        await operator.drained()
    assert sent == ["first"]
    mail = await client.get(Mail, "hello")
    assert (mail.status.sender, mail.status.number, mail.status.read_by) == ("first", None, "bob")
    holds = {entry.manager: str(entry.fields()) for entry in mail.metadata.managed_fields}
    assert "readBy" not in holds["mails/mail"]
    assert "sender" in holds["mails/mail"]
