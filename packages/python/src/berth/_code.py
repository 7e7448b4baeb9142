"""What a run of code gave."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, List, NamedTuple

if TYPE_CHECKING:
    from . import types as t

_PICTURES = ("image/png", "image/jpeg")


class CodeImage(NamedTuple):
    """A picture that the code made."""

    mime: str
    data: bytes

    def save(self, path: str) -> None:
        with open(path, "wb") as file:
            file.write(self.data)


class CodeOutcome:
    def __init__(self, info: t.CodeResult) -> None:
        #: As the answer has it.
        self.info = info

    @property
    def stdout(self) -> str:
        return self.info["stdout"]

    @property
    def stderr(self) -> str:
        return self.info["stderr"]

    @property
    def results(self) -> List[t.CodeValue]:
        """Each value in its forms, by MIME type."""
        return self.info["results"]

    @property
    def error(self) -> t.CodeFailure | None:
        """None if the code ended well."""
        return self.info["error"]

    @property
    def text(self) -> str | None:
        """The value of the last line as text; None if it has none."""
        for result in reversed(self.results):
            if result["main"]:
                shown = result["data"].get("text/plain")
                return shown if isinstance(shown, str) else None
        return None

    @property
    def images(self) -> List[CodeImage]:
        """Plots and other pictures, in the order in which they came."""
        found: List[CodeImage] = []
        for result in self.results:
            for mime in _PICTURES:
                data = result["data"].get(mime)
                if isinstance(data, str):
                    found.append(CodeImage(mime, base64.b64decode(data)))
                    break
        return found
