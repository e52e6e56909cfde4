"""What a command left behind, and what bad input must leave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line on stderr that bad input must give, and nothing else."""
        lines = self.err.splitlines()
        assert self.code in (1, 2), f"exit code {self.code}"
        assert len(lines) == 1, self.err
        assert lines[0].startswith("posviz: ")
        assert self.out == ""
        return lines[0].removeprefix("posviz: ")


def refused(ran: Ran, *parts: str, code: int = 1) -> None:
    """One line with all of these in it."""
    assert ran.code == code
    for part in parts:
        assert part in ran.error
