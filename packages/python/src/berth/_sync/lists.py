# Written by `npm run gen` from berth/_async: do not edit.
"""Lists that come in pages: iterating walks through all of them, `page` asks for one, `all` collects."""

from __future__ import annotations

from typing import Iterator, Callable, Generic, List, TypeVar

from .._pieces import Page

T = TypeVar("T")


class Pages(Generic[T]):
    def __init__(self, read: Callable[[str | None], Page[T]]) -> None:
        self._read = read

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: iterate over it, or call all()>"

    def page(self, cursor: str | None = None) -> Page[T]:
        return self._read(cursor)

    def all(self) -> List[T]:
        return [item for item in self]

    def __iter__(self) -> Iterator[T]:
        page = self._read(None)
        while True:
            for item in page.items:
                yield item
            if page.next is None:
                return
            page = self._read(page.next)
