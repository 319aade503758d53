"""How to reach a model server: a model's address, time-out, retries and TLS."""

import dataclasses
import re

QUERIES_PER_CALL = 32
TIMEOUT_SECONDS = 60.0
NUM_RETRIES = 3
# The wait before the first retry; it doubles with every retry.
BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 10.0

_GRPC = ("grpc", "grpcs")
_ADDRESS = re.compile(
    r"(?P<scheme>https?|grpcs?)://(?P<host>[^/\s]+)(?P<prefix>\S*?)"
    r"/v1/models/(?P<name>[^/:\s]+)"
    r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:\s]+))?/?"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How a client talks to a model server."""

    # REST: for one attempt. gRPC: for the call with its retries.
    timeout_seconds: float = TIMEOUT_SECONDS
    # Repetitions of a call that found no connection, lost it, or was refused because
    # the server was overloaded. A time-out is final: the server may still be working.
    num_retries: int = NUM_RETRIES
    headers: tuple[str, ...] = ()  # Each "Name: value"; metadata in gRPC.
    ca_file: str | None = None  # PEM certificates that sign the server's; None: system.
    client_cert_file: str | None = None  # PEM certificate that identifies this client.
    client_key_file: str | None = None  # PEM key of `client_cert_file`.

    def header_pairs(self) -> list[tuple[str, str]]:
        """Returns the names and values of the headers.

        Raises:
            ValueError: a header has no colon, or characters other than printable ASCII.
        """
        pairs = []
        for header in self.headers:
            name, colon, value = header.partition(":")
            if not colon or not name.strip():
                raise ValueError(
                    f"The header {header!r} has no colon; expected "
                    "'Name: value', such as 'Authorization: Bearer TOKEN'."
                )
            name, value = name.strip(), value.strip()
            if not ((name + value).isascii() and (name + value).isprintable()):
                raise ValueError(
                    f"The header {header!r:.80} has a line break or another character "
                    "that a header cannot contain; expected printable ASCII."
                )
            pairs.append((name, value))
        return pairs


DEFAULT = Settings()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Address:
    """A model on a server."""

    url: str  # As given, without a slash at the end.
    target: str  # "host:port".
    is_grpc: bool
    has_tls: bool
    name: str
    version: int | None
    label: str | None


def parse_address(url: str) -> Address:
    """Returns the parts of a model's address.

    Args:
        url: `http://HOST:PORT/v1/models/NAME`; `https`, `grpc` and `grpcs` are the
            other schemes. `/versions/2` or `/labels/stable` at the end selects a
            version.

    Raises:
        ValueError: the URL is not that of a model.
    """
    match = _ADDRESS.fullmatch(url)
    if match is None or (match["scheme"] in _GRPC and match["prefix"]):
        raise ValueError(
            f"{url!r} is not the address of a model; expected "
            "http://HOST:PORT/v1/models/NAME, or grpc:// for gRPC."
        )
    version = match["version"]
    return Address(
        url=url.rstrip("/"),
        target=match["host"],
        is_grpc=match["scheme"] in _GRPC,
        has_tls=match["scheme"] in ("https", "grpcs"),
        name=match["name"],
        version=None if version is None else int(version),
        label=match["label"],
    )
