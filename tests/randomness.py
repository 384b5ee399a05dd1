"""Randomness that says what it is told to: for recorded noise and for edges of a draw."""


class ScriptedRandomness:
    """Gives out these bytes, piece by piece; asking for other amounts is an error."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    @property
    def is_secret(self) -> bool:
        return False

    def bytes(self, count: int) -> bytes:
        piece = self._pieces.pop(0)
        assert len(piece) == count, f"{count} bytes were asked for, {len(piece)} come next"
        return piece

    def is_used_up(self) -> bool:
        """Whether everything that was recorded has been asked for."""
        return not self._pieces
