# Kernels of ours: a process that gets one line for each run on the descriptor 3, and answers in lines on 4. What it prints is its
# output.

import asyncio
import json
import os
import signal

from kernel import HERE, REQUEST_BYTES, RUN, Died, spawn


class Small:
    def __init__(self, context):
        self.context = context
        self.process = None
        self.count = 0
        self.ended = asyncio.Event()

    async def start(self):
        orders, self.orders = os.pipe()
        self.answers, answers = os.pipe()

        def arrange():
            os.dup2(orders, 23)
            os.dup2(answers, 24)
            os.dup2(23, 3)
            os.dup2(24, 4)

        self.process = await spawn(
            self.context, self.COMMAND, self.ended,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            close_fds=False, preexec_fn=arrange, limit=REQUEST_BYTES * 8,
        )
        os.close(orders)
        os.close(answers)
        self.lines = asyncio.StreamReader(limit=REQUEST_BYTES * 8)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(self.lines), os.fdopen(self.answers, 'rb', 0))
        self.tell = lambda **_: None
        self.pumps = [asyncio.ensure_future(self.pump(name)) for name in ('stdout', 'stderr')]

    async def pump(self, name):
        import codecs

        stream, decode = getattr(self.process, name), codecs.getincrementaldecoder('utf8')('replace').decode
        while data := await stream.read(65536):
            if text := decode(data):
                self.tell(type=name, text=text)

    async def execute(self, code, env, tell):
        self.count += 1
        self.tell = tell
        line = self.order(code)
        try:
            await asyncio.get_running_loop().run_in_executor(None, write_all, self.orders, line)
        except OSError:
            raise Died()
        while line := await self.lines.readline():
            said = json.loads(line)
            if said.get('type') == 'done':
                await self.settle()
                self.tell = lambda **_: None
                return self.count
            # What it printed before is told before.
            await self.settle()
            tell(**said)
        raise Died()

    async def settle(self):
        """What the pipes hold was printed before the run ended."""
        for name in ('stdout', 'stderr'):
            for _ in range(50):
                await asyncio.sleep(0)
                if not readable(self.process, name):
                    break
                await asyncio.sleep(0.001)

    def is_alive(self):
        return not self.ended.is_set()

    async def end(self):
        if self.process is not None and self.is_alive():
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.ended.wait()
        for pump in self.pumps:
            pump.cancel()
        os.close(self.orders)


class Node(Small):
    COMMAND = ['node', '--no-warnings', f'{HERE}/node_kernel.mjs']

    def order(self, code):
        return json.dumps({'code': code, 'typescript': self.context.language == 'typescript'}).encode() + b'\n'

    def interrupt(self):
        # The thread of a program that is in a loop takes no signals: the one beside it is told.
        if self.is_alive():
            write_all(self.orders, b'{"interrupt":true}\n')


class Bash(Small):
    COMMAND = ['bash', '--noprofile', '--norc', f'{HERE}/bash_kernel.sh']

    def order(self, code):
        path = f'{RUN}/{self.context.id}.sh'
        with open(path, 'w') as file:
            file.write(code + '\n')
        return path.encode() + b'\n'

    def interrupt(self):
        if self.is_alive():
            os.killpg(self.process.pid, signal.SIGINT)


def readable(process, name):
    import select

    number = {'stdout': 1, 'stderr': 2}[name]
    pipe = process._transport.get_pipe_transport(number)
    file = pipe and pipe.get_extra_info('pipe')
    return bool(file and not file.closed and select.select([file], [], [], 0)[0])


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]
