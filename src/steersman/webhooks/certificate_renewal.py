"""Creates the certificates of a Secret if they are missing, and renews them in time.

Needs the package ``cryptography``.

Guarantees
- A renewed certificate has the same authority as before, so the caBundle of the registration objects stays valid.
- A damaged Secret is repaired: a key of another certificate, one of another authority, one that is not valid yet.
- A new authority joins the bundle long before the old one expires. It signs nothing in its first hour, in which every
  replica adds it to the caBundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from steersman.transport import CertificateIssuer, certificates_in

#: The keys of the Secret; the first three are those of cert-manager.
CERTIFICATE, KEY, BUNDLE, AUTHORITY_KEY = "tls.crt", "tls.key", "ca.crt", "ca.key"

_LIFE: Final = timedelta(days=90)
#: The part of its life after which a certificate is renewed, and an authority is replaced.
_RENEWED_AFTER, _REPLACED_AFTER = 2 / 3, 0.8
#: Certificates are backdated by an hour, and a new authority signs nothing for another hour.
_UNTIL_KNOWN: Final = timedelta(hours=2)


def renewed(data: Mapping[str, bytes], names: Iterable[str], now: datetime, *, force: bool = False) -> dict[str, bytes]:
    """The entries of the Secret to change; empty if none is due. ``force`` renews the certificate in any case."""
    wanted = list(names)
    authorities = [each for each in certificates_in(data.get(BUNDLE, b"")) if each.is_valid(now)]
    issuer = CertificateIssuer.load(data.get(AUTHORITY_KEY, b"") + authorities[0].pem) if authorities else None
    changes: dict[str, bytes] = {}
    is_known = issuer is not None and authorities[0].begins + _UNTIL_KNOWN < now
    if issuer is None or authorities[0].age(now) > _REPLACED_AFTER:
        next_issuer = CertificateIssuer.create()
        changes[BUNDLE] = b"".join((next_issuer.certificate, *(authority.pem for authority in authorities)))
        changes[AUTHORITY_KEY] = next_issuer.key
        if issuer is not None:
            return changes
        issuer = next_issuer
        authorities = []
    current = certificates_in(data.get(CERTIFICATE, b""))[:1]
    is_valid = (
        bool(current)
        and current[0].is_valid(now)
        and current[0].names.issuperset(wanted)
        and current[0].has_key(data.get(KEY, b""))
        and any(map(current[0].is_issued_by, authorities))
    )
    is_due = force or not is_valid or current[0].age(now) > _RENEWED_AFTER
    if is_due and (is_known or not is_valid or len(authorities) == 1):
        pair = issuer.server(wanted, life=_LIFE)
        changes |= {CERTIFICATE: pair.certificate, KEY: pair.key}
    return changes
