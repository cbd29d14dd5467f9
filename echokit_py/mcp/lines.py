"""Cuts a stream of bytes into lines, each of a bounded length. Pure."""

from __future__ import annotations


class Lines:
    """`most`: the bytes of a line; a longer one is left out as a whole."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes; return the lines that are complete, without their ends, those too long as b""."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            self._add(end)
            lines.append(b"".join(self._pieces) if self._size <= self._most else b"")
            self._pieces, self._size = [], 0
        self._add(rest)
        return lines

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._most:
            self._pieces.append(piece)
        else:
            self._pieces = []
