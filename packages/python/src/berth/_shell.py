"""Words for a shell. Whatever is put into a line reaches the command as it is: no quote or semicolon in it means
anything."""

from __future__ import annotations

import os
import re
import shlex
from string import Formatter
from typing import Any, Iterable, Sequence

Word = str | int | float | os.PathLike[str] | Sequence[str | int | float | os.PathLike[str]]


class _Quoting(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (str, os.PathLike)) or not isinstance(value, Iterable):
            return shlex.quote(format(os.fspath(value) if isinstance(value, os.PathLike) else value, format_spec))
        return " ".join(self.format_field(each, format_spec) for each in value)


def shell_line(line: str, words: Sequence[Word], named: dict[str, Word]) -> str:
    """`line` as `str.format` reads it, with every value as one word, or one for each item of a list."""
    return _Quoting().vformat(line, words, named)


def argv_of(command: str | Sequence[str]) -> list[str]:
    """The arguments of a command: a list as it is, a string as a line for a shell."""
    return ["sh", "-c", command] if isinstance(command, str) else list(command)


def name_for(image: str, mark: str) -> str:
    """Returns a name for a unit of an image: `python-7f3a9c` for `berth.local/python:3.11`."""
    last = image.split("@")[0].split("/")[-1].split(":")[0]
    word = re.sub(r"[^a-z0-9]+", "-", last.lower())[:20].strip("-")
    return f"{word or 'unit'}-{mark}"
