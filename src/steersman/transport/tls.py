"""TLS material: what to verify the other end with, and our own certificate.

Guarantees
- Files are checked (time, size, inode) whenever a context is requested: a renewed certificate or CA is used by the next
  request, on a new connection, without a restart.
- A half-written renewal does not break a working client: the last usable material stays in use.
- Private keys given as data are kept off the disk where the system allows it, and are never shown. An encrypted key is
  a ConfigError, never a prompt on the terminal.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import NoReturn

from steersman.errors import ConfigError

#: The version of a file: modification time, size and inode.
_Version = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class PemKeyPair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsMaterial:
    """Certificates of one server and one client, each as a file or as data; data wins if both are given.

    `server_name` is verified instead of the host in the address. Without a CA, the system's are trusted.
    """

    ca_file: str | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    certificate_file: str | None = None
    certificate_data: bytes | None = field(default=None, repr=False)
    key_file: str | None = None
    key_data: bytes | None = field(default=None, repr=False)
    server_name: str | None = None
    insecure_skip_verify: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The files in use, without those overridden by data."""
        pairs = (
            (self.ca_file, self.ca_data),
            (self.certificate_file, self.certificate_data),
            (self.key_file, self.key_data),
        )
        return tuple(file for file, data in pairs if file and data is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """A server's certificate, and the CA for client certificates; each as a file or as data, data wins.

    With a client CA, clients may present a certificate; with ``require_client`` they must.
    """

    certificate_file: str | None = None
    certificate_data: bytes | None = field(default=None, repr=False)
    key_file: str | None = None
    key_data: bytes | None = field(default=None, repr=False)
    client_ca_file: str | None = None
    client_ca_data: bytes | None = field(default=None, repr=False)
    require_client: bool = False

    def __post_init__(self) -> None:
        if not self.certificate_file and self.certificate_data is None:
            raise ValueError("a server needs a certificate: ServerTls(certificate_file=..., key_file=...)")
        if self.require_client and not self.has_client_authority:
            raise ValueError("require_client needs a CA to verify client certificates: pass client_ca_file")

    @property
    def has_client_authority(self) -> bool:
        """Whether client certificates are verified."""
        return bool(self.client_ca_file) or self.client_ca_data is not None

    @property
    def material(self) -> TlsMaterial:
        """The same material in the form of a client's."""
        return TlsMaterial(
            ca_file=self.client_ca_file,
            ca_data=self.client_ca_data,
            certificate_file=self.certificate_file,
            certificate_data=self.certificate_data,
            key_file=self.key_file,
            key_data=self.key_data,
        )


class TlsContexts:
    """Makes one `ssl.SSLContext` for each version of the material.

    ``on_read`` is called whenever changed files have been read, with whether they are usable.
    """

    def __init__(
        self,
        material: TlsMaterial,
        *,
        make: Callable[[TlsMaterial], ssl.SSLContext] | None = None,
        on_read: Callable[[bool], None] | None = None,
    ) -> None:
        self._material = material
        self._make = make or make_context
        self._on_read = on_read
        self._files = material.files
        self._versions: tuple[_Version, ...] | None = None
        self._context: ssl.SSLContext | None = None

    def current(self) -> ssl.SSLContext:
        """Return the context of the current material; the same object as long as nothing changed."""
        if self._context is not None and not self._files:
            return self._context
        versions = tuple([_version(file) for file in self._files])
        if self._context is None or versions != self._versions:
            usable = True
            try:
                self._context = self._make(self._material)
            except ConfigError:
                # certificate and key are two files: between the two writes they do not match
                if self._context is None:
                    raise
                usable = False
            self._versions = versions
            if self._on_read is not None:
                self._on_read(usable)
        return self._context


#: The TLS material of a server, or a function that returns the current material without blocking.
ServerTlsSource = ServerTls | Callable[[], ServerTls]


class ServerContexts:
    """The contexts of a server: every handshake gets the one of the current material."""

    def __init__(self, source: ServerTlsSource, *, on_read: Callable[[bool], None] | None = None) -> None:
        self._source = source
        self._on_read = on_read
        self._tls = source if isinstance(source, ServerTls) else source()
        self._contexts = TlsContexts(self._tls.material, make=partial(_server_context, self._tls), on_read=on_read)

    def listening(self) -> ssl.SSLContext:
        """The context to listen with; raises ConfigError if the material is unusable."""
        self._contexts.current()
        context = _server_context(self._tls, self._tls.material)
        # called in every handshake, whether or not the client names a server
        context.sni_callback = self._choose
        return context

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        if not isinstance(self._source, ServerTls):
            self._renew(self._source())
        connection.context = self._contexts.current()

    def _renew(self, tls: ServerTls) -> None:
        """Use new material for the next connections; keep the old one if the new one is invalid."""
        if tls is self._tls:
            return
        self._tls = tls
        contexts = TlsContexts(tls.material, make=partial(_server_context, tls), on_read=self._on_read)
        with contextlib.suppress(ConfigError):
            contexts.current()
            self._contexts = contexts


def _server_context(tls: ServerTls, material: TlsMaterial) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    if material.ca_data is not None or material.ca_file:
        _load_ca(context, material)
        context.verify_mode = ssl.CERT_REQUIRED if tls.require_client else ssl.CERT_OPTIONAL
    _load_certificate(context, material, whose="server")
    return context


def _version(file: str) -> _Version:
    try:
        status = os.stat(file)  # noqa: PTH116 - called for every request, and a Path would double the cost
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def make_context(material: TlsMaterial) -> ssl.SSLContext:
    """Load the material into a new context for a client; raises ConfigError if it is unusable."""
    # not ssl.create_default_context: since Python 3.13 it rejects CAs without key identifiers, which clusters have
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    if material.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif material.ca_data is not None or material.ca_file:
        _load_ca(context, material)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if material.certificate_data is not None or material.certificate_file:
        _load_certificate(context, material)
    return context


def _load_ca(context: ssl.SSLContext, material: TlsMaterial) -> None:
    try:
        if material.ca_data is not None:
            context.load_verify_locations(cadata=material.ca_data.decode("ascii"))
        else:
            context.load_verify_locations(cafile=material.ca_file)
    except (OSError, ValueError) as error:
        place = "given as data" if material.ca_data is not None else material.ca_file
        raise ConfigError(
            f"cannot load the certificate authority {place}: {_reason(error)}; it must be PEM certificates"
        ) from None


def _load_certificate(context: ssl.SSLContext, material: TlsMaterial, *, whose: str = "client") -> None:
    certificate = material.certificate_file if material.certificate_data is None else "given as data"
    if material.key_data is None and not material.key_file:
        raise ConfigError(f"the {whose} certificate {certificate} has no key")
    try:
        with (
            _as_file(material.certificate_data, material.certificate_file) as certificate_file,
            _as_file(material.key_data, material.key_file) as key_file,
        ):
            context.load_cert_chain(certificate_file, key_file, password=_refuse_password)
    except (OSError, ValueError) as error:
        key = material.key_file if material.key_data is None else "given as data"
        raise ConfigError(
            f"cannot load the {whose} certificate {certificate} with the key {key}: {_reason(error)};"
            " both must be PEM and belong together"
        ) from None


def _refuse_password() -> NoReturn:
    raise ConfigError("the key of the certificate is encrypted: use an unencrypted one, or an exec plugin")


def _reason(error: Exception) -> str:
    """The reason, without content: an OpenSSL reason is a word, a decoding error would quote the data."""
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").lower().replace("_", " ")
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "not PEM"


@contextlib.contextmanager
def _as_file(data: bytes | None, file: str | None) -> Generator[str]:
    """A path for data that OpenSSL reads only from files; data stays in memory where the system supports it."""
    if data is None:
        assert file is not None
        yield file
        return
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("steersman", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    import tempfile  # noqa: PLC0415 - only systems without memory files need it

    with tempfile.NamedTemporaryFile() as held:
        held.write(data)
        held.flush()
        yield held.name
