"""What is still being worked out by another thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

Found = TypeVar("Found")


def meanwhile(call: Callable[[], Found]) -> Future[Found]:
    """The result of a call in a thread that nobody waits for if the program ends before it does."""
    future: Future[Found] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, name="posviz-meanwhile", daemon=True).start()
    return future


class Awaited(Mapping[str, Any]):
    """A mapping that waits for a late fact only when somebody asks for that one.

    Hashing a large checkpoint takes as long as drawing it. What is pickled or copied is a plain dict.
    """

    def __init__(self, known: Mapping[str, Any], **late: Future[Any]) -> None:
        self._facts: dict[str, Any] = {**known, **late}

    def __getitem__(self, name: str) -> Any:
        fact = self._facts[name]
        return fact.result() if isinstance(fact, Future) else fact

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __contains__(self, name: object) -> bool:
        return name in self._facts

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)
