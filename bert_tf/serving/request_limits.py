"""Limits of the requests that an export answers."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestLimits:
    """Limits that bound the memory of a request; they are part of the graph."""

    # Positions that are computed at once, padding included; see `row_parts`.
    max_batch_tokens: int = 8192
    # Maximum length of a text in UTF-8. The error of a longer one names this limit.
    max_text_bytes: int = 2**20


DEFAULT = RequestLimits()
