"""A small MessagePack reader, written from its specification: shares nothing with the codec or its library."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Walk:
    """Reads one value; `markers` collects the kind of every value met ("map", "array", "str", "bin", "int", …)."""

    data: bytes
    at: int = 0
    markers: list[str] = field(default_factory=list)

    def value(self) -> object:
        """Read the value at `at`. Maps come back as lists of pairs, so that doubled keys stay visible."""
        marker = self._take(1)[0]
        if marker <= 0x7F:
            return self._met("int", marker)
        if marker <= 0x8F:
            return self._map(marker & 0x0F)
        if marker <= 0x9F:
            return self._array(marker & 0x0F)
        if marker <= 0xBF:
            return self._met("str", self._take(marker & 0x1F).decode())
        return self._long(marker)

    def _long(self, marker: int) -> object:
        match marker:
            case 0xCC | 0xCD | 0xCE:
                return self._met("int", self._number(1 << (marker - 0xCC)))
            case 0xD9 | 0xDA | 0xDB:
                return self._met("str", self._take(self._number(1 << (marker - 0xD9))).decode())
            case 0xDC | 0xDD:
                return self._array(self._number(2 << (marker - 0xDC)))
            case 0xDE | 0xDF:
                return self._map(self._number(2 << (marker - 0xDE)))
            case 0xC4 | 0xC5 | 0xC6:
                return self._met("bin", self._take(self._number(1 << (marker - 0xC4))))
        raise AssertionError(f"marker {marker:#x} has no place in an event")

    def _array(self, length: int) -> list[object]:
        self.markers.append("array")
        return [self.value() for _ in range(length)]

    def _map(self, length: int) -> object:
        self.markers.append("map")
        return [("pair", self.value(), self.value()) for _ in range(length)]

    def _met(self, kind: str, value: object) -> object:
        self.markers.append(kind)
        return value

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        assert len(taken) == size, "the value is cut off"
        self.at += size
        return taken
