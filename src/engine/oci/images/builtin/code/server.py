# Runs code for the API: contexts, which are kernels of Jupyter or small ones of ours, behind a socket that only root of this unit
# may open. One connection asks for one thing, in one line of JSON, and is answered in lines of JSON and a zero byte.
#
# Nothing of it listens to the network, but for the kernel of R, which knows no sockets of this kind: to loopback, with a key.

import asyncio
import json
import os
import signal
import traceback

import modules

modules.use()

from contexts import Contexts, Refused
from kernel import HERE, MB, REQUEST_BYTES, RUN, log

RESULT_BYTES = 8 * MB
PRINTED_BYTES = 32 * MB
PIECE_CHARACTERS = 256 * 1024
# What is told within it goes in one piece: each costs a few handovers on its way out of the sandbox.
PIECE_S = 0.02
# The first runs in a sandbox take three times as long as those that follow. Before the machine is a unit's, nobody waits for them.
WARM_RUNS = 30

# This began before the machine was a unit's. The unit's own command is the first process, and has its environment.
AHEAD = os.environ.pop('BERTH_AHEAD', None) is not None


class Told:
    """What one connection is told, in bounds: it is read as fast as it comes, so that no kernel waits for a slow reader."""

    def __init__(self, writer):
        self.writer = writer
        self.waiting = []
        self.flushing = None
        self.printed = self.results = 0
        self.truncated = False

    def __call__(self, **event):
        if 'truncated' in event:
            self.truncated = True
            return
        kind = event['type']
        if kind in ('stdout', 'stderr') and len(event['text']) > PIECE_CHARACTERS:
            # A reader keeps one piece at a time.
            for at in range(0, len(event['text']), PIECE_CHARACTERS):
                self(type=kind, text=event['text'][at : at + PIECE_CHARACTERS])
            return
        line = json.dumps(event, default=str).encode() + b'\n'
        if kind in ('stdout', 'stderr'):
            self.printed += len(line)
        elif kind == 'result':
            self.results += len(line)
        if kind != 'error' and (self.printed > PRINTED_BYTES or self.results > RESULT_BYTES):
            self.truncated = True
            return
        self.waiting.append(line)
        if self.flushing is None:
            self.flushing = asyncio.get_running_loop().call_later(PIECE_S, self.flush)

    def flush(self, after=b''):
        if self.flushing is not None:
            self.flushing.cancel()
            self.flushing = None
        lines, self.waiting = b''.join([*self.waiting, after]), []
        if lines:
            self.writer.write(lines)


async def serve(contexts, reader, writer):
    told = Told(writer)
    work = gone = None
    try:
        line = await reader.readline()
        if not line:
            return
        work = asyncio.ensure_future(contexts.answer(json.loads(line), told))
        gone = asyncio.ensure_future(reader.read(1))
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            return
        try:
            told(type='end', **work.result(), **({'cut': True} if told.truncated else {}))
        except Refused as refused:
            told(type='refused', code=refused.code, message=str(refused))
        told.flush(b'\0')
        await writer.drain()
    except (ConnectionError, ValueError) as error:
        log('a connection ended', repr(error))
    except Exception:
        log(traceback.format_exc())
    finally:
        if gone is not None:
            gone.cancel()
        told.flush()
        writer.close()


async def main():
    # The process that began it may have ignored it, and what it begins would then as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.makedirs(RUN, mode=0o700, exist_ok=True)
    os.chmod(RUN, 0o700)
    for name in os.listdir(RUN):
        os.unlink(f'{RUN}/{name}')
    contexts = Contexts(is_adopted=not AHEAD)
    contexts.load()
    os.umask(0o077)
    await asyncio.start_unix_server(lambda *ends: serve(contexts, *ends), f'{RUN}/socket.new', limit=REQUEST_BYTES, backlog=256)
    os.umask(0o022)
    os.rename(f'{RUN}/socket.new', f'{RUN}/socket')
    # Warm before it is asked for, by the way that a call takes.
    asking = await asyncio.create_subprocess_exec(f'{HERE}/client', stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    for _ in range(WARM_RUNS if AHEAD else 1):
        asking.stdin.write(b'{"op": "warm"}\n')
        try:
            answer = json.loads((await asking.stdout.readuntil(b'\0')).rstrip(b'\0'))
        except asyncio.IncompleteReadError:
            answer = None
        if answer is None or answer['type'] != 'end':
            log('the first kernel is not warm', answer)
            break
    asking.stdin.close()
    await asking.wait()
    open(f'{RUN}/warm', 'w').close()
    await asyncio.Event().wait()


if __name__ == '__main__':
    # What runs code has this one's environment, and no priority over it.
    asyncio.run(main())
