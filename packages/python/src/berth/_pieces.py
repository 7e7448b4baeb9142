"""Pieces of what is read: output and its end, pages of lists, events."""

from __future__ import annotations

import base64
import codecs
from typing import Any, Generic, List, Mapping, NamedTuple, TypeVar

T = TypeVar("T")


class OutputPiece(NamedTuple):
    #: `stdout` or `stderr`.
    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """As UTF-8; bytes that are not become U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @staticmethod
    def of(stream: str, told: Mapping[str, Any]) -> OutputPiece:
        data: str = told["data"]
        is_base64 = told.get("encoding") == "base64"
        return OutputPiece(stream, base64.b64decode(data) if is_base64 else data.encode())


def text_of(data: bytes, *, is_cut: bool = False) -> str:
    """As UTF-8; bytes that are not become U+FFFD. `is_cut`: a character that the end cuts is left out."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    return decoder.decode(bytes(data), final=not is_cut)


class Exit(NamedTuple):
    exit_code: int
    #: The command ran out of its time, and was killed.
    timed_out: bool


class Output(NamedTuple):
    stdout: str
    stderr: str


class Page(Generic[T]):
    def __init__(self, items: List[T], next: str | None) -> None:
        self.items = items
        #: For the page after this one; None when there is none.
        self.next = next


class Change(NamedTuple):
    """In a directory of a unit: `ready`, `create`, `write`, `remove`, `rename`, `chmod` or `overflow`."""

    event: str
    #: From the watched directory; in base64 if `path_encoding` says so.
    path: str
    is_directory: bool
    path_encoding: str | None


class TeamEvent(NamedTuple):
    """One thing that changed: `unit`, `stack`, `agent`, `money`, `team` (its people, or the team itself), `host` (one that units
    of the team are on), `process` (a background process that has ended), `change` (a call that changed something, as a sentence, where it is asked for), or
    `gone` with the id of what is destroyed. `reset`: read your lists again."""

    event: str
    data: Mapping[str, Any]
