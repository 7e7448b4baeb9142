# Kernels of Jupyter: Python's, which are forked from one process (python_kernels.py), and R's. `execute` tells what it hears, and
# returns with the number of the execution.

import asyncio
import json
import os
import secrets
import signal
import sys
import time

from kernel import HERE, RUN, START_S, Died, log, spawn


class Run:
    """What is heard of one execution, by the name of its request."""

    def __init__(self, asked, tell):
        self.asked = asked
        self.tell = tell
        self.told_error = False
        self.idle = asyncio.get_running_loop().create_future()

    def hear(self, kind, content):
        if kind == 'stream':
            self.tell(type=content['name'], text=content['text'])
        elif kind in ('display_data', 'execute_result', 'update_display_data'):
            self.tell(type='result', data=content['data'], main=kind == 'execute_result')
        elif kind == 'error':
            self.told_error = True
            self.tell(type='error', name=content['ename'], value=content['evalue'], traceback=content['traceback'])
        elif kind == 'status' and content['execution_state'] == 'idle' and not self.idle.done():
            self.idle.set_result(None)


class Jupyter:
    takes_env = False

    def __init__(self, context):
        self.context = context
        self.file = f'{RUN}/{context.id}.json'
        self.client = None
        self.listening = None
        self.run = None
        # The environment that it is to have from its next run on; null: the one that it began with.
        self.adopts = None

    async def connect(self):
        from jupyter_client.asynchronous import AsyncKernelClient

        self.client = AsyncKernelClient()
        self.client.load_connection_file(self.file)
        self.client.start_channels(stdin=False, hb=False, control=False)
        deadline = time.monotonic() + START_S
        # Both are open once an answer has come on each: what a kernel tells before is told to nobody.
        while True:
            asked = self.client.kernel_info()
            if await self.heard(self.client.shell_channel, asked, 1) and await self.heard(self.client.iopub_channel, asked, 1):
                break
            if not self.is_alive() or time.monotonic() > deadline:
                raise Died()
        self.listening = asyncio.ensure_future(self.listen())

    async def listen(self):
        while True:
            message = await self.client.iopub_channel.get_msg(timeout=None)
            if self.run is not None and message['parent_header'].get('msg_id') == self.run.asked:
                self.run.hear(message['msg_type'], message['content'])

    async def heard(self, channel, asked, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                message = await channel.get_msg(timeout=left)
            except Exception:
                return False
            if message['parent_header'].get('msg_id') == asked:
                return True
        return False

    async def warm(self):
        """The first run takes what later ones find done. This one leaves nothing behind, and counts for nothing."""
        run = self.follow('0', {'value': '0'}, lambda **_: None, silent=True, store_history=False)
        await asyncio.wait_for(run, START_S)

    async def execute(self, code, env, tell):
        expressions = {'berth_env': json.dumps(env)} if env and self.takes_env else {}
        if self.adopts is not None:
            expressions['berth_adopts'], self.adopts = json.dumps(self.adopts), None
        return await self.follow(code, expressions, tell)

    async def follow(self, code, expressions, tell, **how):
        asked = self.client.execute(code, allow_stdin=False, stop_on_error=False, user_expressions=expressions, **how)
        run = self.run = Run(asked, tell)
        try:
            reply = await self.while_alive(self.answer(run))
        finally:
            self.run = None
        if reply['status'] == 'error' and not run.told_error:
            tell(type='error', name=reply.get('ename', ''), value=reply.get('evalue', ''), traceback=reply.get('traceback', []))
        return reply.get('execution_count')

    async def answer(self, run):
        while True:
            message = await self.client.shell_channel.get_msg(timeout=None)
            if message['parent_header'].get('msg_id') == run.asked:
                break
        # Kernels of python_kernels.py say whether more than the reply comes, and may give the value with it.
        ours = message['metadata'].get('berth', {'told': True})
        if ours['told']:
            await run.idle
        if ours.get('value') is not None:
            run.tell(type='result', data=ours['value'], main=True)
        if ours.get('truncated'):
            run.tell(truncated=True)
        return message['content']

    async def while_alive(self, work):
        working, ended = asyncio.ensure_future(work), asyncio.ensure_future(self.ended.wait())
        try:
            await asyncio.wait((working, ended, self.listening), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if self.listening.done():
                self.listening.result()
            raise Died()
        finally:
            ended.cancel()
            working.cancel()

    def close(self):
        if self.listening is not None:
            self.listening.cancel()
        if self.client is not None:
            self.client.stop_channels()
        for name in os.listdir(RUN):
            if name.startswith(self.context.id):
                os.unlink(f'{RUN}/{name}')


class Python(Jupyter):
    """Forked from the process of python_kernels.py."""

    takes_env = True

    def __init__(self, context, nursery):
        super().__init__(context)
        self.nursery = nursery
        self.pid = None
        self.ended = asyncio.Event()

    async def start(self):
        from jupyter_client.connect import write_connection_file

        write_connection_file(self.file, transport='ipc', ip=f'{RUN}/{self.context.id}', key=secrets.token_hex(32).encode())
        self.pid = await self.nursery.fork(self)
        await self.connect()

    def is_alive(self):
        return not self.ended.is_set()

    def signal(self, number):
        if self.pid is not None and self.is_alive():
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                # It has not made a group of its own yet.
                os.kill(self.pid, number)

    def interrupt(self):
        self.signal(signal.SIGINT)

    async def end(self):
        self.signal(signal.SIGKILL)
        if self.pid is not None:
            await self.ended.wait()
        self.close()


class Nursery:
    """The process that Python's kernels are forked from. It is begun again if something ends it."""

    def __init__(self):
        self.process = None
        self.ready = None
        self.forks = {}
        self.kernels = {}

    async def begin(self):
        import socket

        ours, theirs = socket.socketpair()
        program = f'{HERE}/python_kernels.py'

        def arrange():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)

        self.process = await asyncio.create_subprocess_exec(
            sys.executable, program, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            close_fds=False, preexec_fn=arrange,
        )
        theirs.close()
        self.reader, self.writer = await asyncio.open_connection(sock=ours)
        asyncio.ensure_future(self.listen())
        if not json.loads(await self.reader_line()).get('ready'):
            raise Died()

    async def reader_line(self):
        return await asyncio.wait_for(self.first, START_S)

    async def listen(self):
        while line := await self.reader.readline():
            said = json.loads(line)
            if 'ready' in said:
                self.first.set_result(line)
            elif 'ended' in said:
                kernel = self.kernels.pop(said['ended'], None)
                if kernel is not None:
                    if said['status'] != signal.SIGKILL:
                        log('a kernel ended', said['status'])
                    kernel.ended.set()
            else:
                self.forks.pop(said['id']).set_result(said['pid'])
        # With it end all of its kernels.
        self.ready = None
        for kernel in self.kernels.values():
            kernel.ended.set()
        self.kernels.clear()
        for waiting in self.forks.values():
            waiting.set_exception(Died())
        self.forks.clear()
        if not self.first.done():
            self.first.set_exception(Died())

    async def fork(self, kernel):
        if self.ready is None:
            self.first = asyncio.get_running_loop().create_future()
            self.ready = asyncio.ensure_future(self.begin())
        await asyncio.shield(self.ready)
        order = secrets.token_hex(8)
        waiting = self.forks[order] = asyncio.get_running_loop().create_future()
        context = kernel.context
        line = json.dumps({'id': order, 'file': kernel.file, 'cwd': context.cwd, 'env': {**os.environ, **context.env}})
        self.writer.write(line.encode() + b'\n')
        pid = await waiting
        self.kernels[pid] = kernel
        return pid


class R(Jupyter):
    def __init__(self, context):
        super().__init__(context)
        self.process = None
        self.ended = asyncio.Event()

    async def start(self):
        from jupyter_client.connect import write_connection_file

        write_connection_file(self.file, ip='127.0.0.1', key=secrets.token_hex(32).encode())
        self.process = await spawn(
            self.context, ['R', '--slave', '-e', 'IRkernel::main()', '--args', self.file], self.ended
        )
        await self.connect()

    def is_alive(self):
        return not self.ended.is_set()

    def interrupt(self):
        if self.is_alive():
            os.killpg(self.process.pid, signal.SIGINT)

    async def end(self):
        if self.process is not None and self.is_alive():
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.ended.wait()
        self.close()
