"""Headers of an answer that no longer hold: its body comes decoded, and as a whole."""

from __future__ import annotations

from typing import Final

OF_ENCODING: Final = ("content-encoding", "content-length", "transfer-encoding")
# For clients that read an answer from a connection, which is theirs alone.
OF_TRANSFER: Final = (*OF_ENCODING, "connection")
