"""Commands of an OpenAI Agents session that go on between the model's turns, and may be typed into."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Deque, Dict, Mapping, Set

from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import (
    PTY_PROCESSES_MAX,
    PtyExecUpdate,
    allocate_pty_process_id,
    clamp_pty_yield_time_ms,
    process_id_to_prune_from_meta,
    resolve_pty_write_yield_time_ms,
)

from .. import AsyncTerminal, AsyncUnit, BerthError

#: As of a shell that a signal ended.
_KILLED = 137


class Running:
    """A command with its connection, and what it printed since it was last asked."""

    def __init__(self, terminal: AsyncTerminal) -> None:
        self.terminal = terminal
        self.output: Deque[bytes] = deque()
        self.lock = asyncio.Lock()
        self.notify = asyncio.Event()
        self.exit_code: int | None = None
        self.last_used = time.monotonic()
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        exit_code = _KILLED
        try:
            async for piece in self.terminal:
                async with self.lock:
                    self.output.append(piece.data)
                self.notify.set()
            exit_code = (await self.terminal.wait()).exit_code
        except BerthError as error:
            self.output.append(f"berth: {error}\n".encode())
        finally:
            self.exit_code = exit_code
            self.notify.set()

    async def close(self) -> None:
        await self.terminal.close()
        await asyncio.gather(self.reader, return_exceptions=True)


class Terminals:
    """Those of a session, by the numbers that the model knows them by. The command used longest ago ends where there would be too
    many."""

    def __init__(self) -> None:
        self.running: Dict[int, Running] = {}
        self._taken: Set[int] = set()

    async def start(
        self,
        unit: AsyncUnit,
        argv: list[str],
        *,
        tty: bool,
        cwd: str | None,
        env: Mapping[str, str],
        user: str | None,
        yield_time_s: float | None,
        max_output_tokens: int | None,
    ) -> PtyExecUpdate:
        """Begin a command, and return what it printed in `yield_time_s`. Raises BerthError if it could not be begun."""
        command = Running(await unit.terminal(argv, tty=tty, cwd=cwd, env=env, user=user))
        number = allocate_pty_process_id(self._taken)
        oldest = self._oldest()
        self._taken.add(number)
        self.running[number] = command
        if oldest is not None:
            await self._forget(oldest)
        wait_ms = clamp_pty_yield_time_ms(10_000 if yield_time_s is None else int(yield_time_s * 1000))
        return await self._update(number, command, wait_ms, max_output_tokens)

    async def write(
        self, number: int, command: Running, chars: str, yield_time_s: float | None, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        """Type into a command, and return what it printed since the last time."""
        command.last_used = time.monotonic()
        if chars:
            await command.terminal.write(chars)
        asked_ms = 250 if yield_time_s is None else int(yield_time_s * 1000)
        wait_ms = resolve_pty_write_yield_time_ms(yield_time_ms=asked_ms, input_empty=chars == "")
        return await self._update(number, command, wait_ms, max_output_tokens)

    async def end(self) -> None:
        """End them all."""
        for number in list(self.running):
            await self._forget(number)

    async def _update(
        self, number: int, command: Running, wait_ms: int, max_output_tokens: int | None
    ) -> PtyExecUpdate:
        output, tokens, has_ended = await collect_pty_output(
            output_chunks=command.output,
            output_lock=command.lock,
            output_notify=command.notify,
            is_done=lambda: command.exit_code is not None,
            yield_time_ms=wait_ms,
            max_output_tokens=max_output_tokens,
        )
        if has_ended:
            await self._forget(number)
        return PtyExecUpdate(
            process_id=None if has_ended else number,
            output=output,
            exit_code=command.exit_code if has_ended else None,
            original_token_count=tokens,
        )

    def _oldest(self) -> int | None:
        if len(self.running) < PTY_PROCESSES_MAX:
            return None
        return process_id_to_prune_from_meta(
            [(number, each.last_used, each.exit_code is not None) for number, each in self.running.items()]
        )

    async def _forget(self, number: int) -> None:
        self._taken.discard(number)
        command = self.running.pop(number, None)
        if command is not None:
            await command.close()
