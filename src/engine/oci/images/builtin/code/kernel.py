# What every kernel needs: where the interpreter has its files, and the start of a program.

import asyncio
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = '/run/berth-code'
START_S = 60
MB = 1024 * 1024
REQUEST_BYTES = 8 * MB


class Died(Exception):
    """The kernel has ended, or does not answer."""


def log(*what):
    print('berth-code:', *what, file=sys.stderr, flush=True)


async def spawn(context, command, ended, **options):
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=context.cwd if os.path.isdir(context.cwd) else '/',
        env={**os.environ, **context.env},
        start_new_session=True,
        **{'stdin': asyncio.subprocess.DEVNULL, 'stdout': asyncio.subprocess.DEVNULL, 'stderr': asyncio.subprocess.DEVNULL, **options},
    )

    async def watch():
        await process.wait()
        ended.set()

    asyncio.ensure_future(watch())
    return process
