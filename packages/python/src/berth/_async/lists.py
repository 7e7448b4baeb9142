"""Lists that come in pages: iterating walks through all of them, `page` asks for one, `all` collects."""

from __future__ import annotations

from typing import AsyncIterator, Awaitable, Callable, Generator, Generic, List, TypeVar

from .._pieces import Page

T = TypeVar("T")


class AsyncPages(Generic[T]):
    def __init__(self, read: Callable[[str | None], Awaitable[Page[T]]]) -> None:
        self._read = read

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: iterate over it, or call all()>"

    def __await__(self) -> Generator[object, None, List[T]]:
        """A list of all items."""
        return self.all().__await__()

    async def page(self, cursor: str | None = None) -> Page[T]:
        return await self._read(cursor)

    async def all(self) -> List[T]:
        return [item async for item in self]

    async def __aiter__(self) -> AsyncIterator[T]:
        page = await self._read(None)
        while True:
            for item in page.items:
                yield item
            if page.next is None:
                return
            page = await self._read(page.next)
