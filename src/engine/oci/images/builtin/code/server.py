# Runs code for the API: contexts, which are kernels of Jupyter or small ones of ours, behind a socket that only root of this unit
# may open. One connection asks for one thing, in one line of JSON, and is answered in lines of JSON and a zero byte.
#
# Nothing of it listens to the network, but for the kernel of R, which knows no sockets of this kind: to loopback, with a key.
# Which contexts there were is kept on the disk: what a start finds there is lost, and says so.

import asyncio
import json
import os
import secrets
import signal
import sys
import time
import traceback

import modules

modules.use()

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = '/run/berth-code'
KEPT = '/var/lib/berth-code/contexts.json'
MOST_CONTEXTS = 64
MB = 1024 * 1024
REQUEST_BYTES = 8 * MB
RESULT_BYTES = 8 * MB
PRINTED_BYTES = 32 * MB
PIECE_CHARACTERS = 256 * 1024
START_S = 60
# A kernel that goes on after an interrupt is ended.
INTERRUPT_S = 5
# What is told within it goes in one piece: each costs a few handovers on its way out of the sandbox.
PIECE_S = 0.02
# The first runs in a sandbox take three times as long as those that follow. Before the machine is a unit's, nobody waits for them.
WARM_RUNS = 30
LANGUAGES = {'python': 'python', 'javascript': 'node', 'typescript': 'node', 'bash': 'bash', 'r': 'r'}


# This began before the machine was a unit's. The unit's own command is the first process, and has its environment.
AHEAD = os.environ.pop('BERTH_AHEAD', None) is not None


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Died(Exception):
    pass


def log(*what):
    print('berth-code:', *what, file=sys.stderr, flush=True)


# ---- Kernels of Jupyter. `execute` yields events, and returns with the number of the execution.


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
        expressions = {'berth_env': json.dumps(env)} if env and LANGUAGES[self.context.language] == 'python' else {}
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


# ---- Kernels of ours: a process that gets one line for each run on the descriptor 3, and answers in lines on 4. What it prints is
# its output.


class Small:
    def __init__(self, context, command, ask):
        self.context = context
        self.command = command
        self.ask = ask
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
            self.context, self.command, self.ended,
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
        line = self.ask(self, code)
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

    def interrupt(self):
        if not self.is_alive():
            return
        # The thread of a JavaScript that is in a loop takes no signals: the one beside it is told.
        if LANGUAGES[self.context.language] == 'node':
            write_all(self.orders, b'{"interrupt":true}\n')
        else:
            os.killpg(self.process.pid, signal.SIGINT)

    async def end(self):
        if self.process is not None and self.is_alive():
            os.killpg(self.process.pid, signal.SIGKILL)
            await self.ended.wait()
        for pump in self.pumps:
            pump.cancel()
        os.close(self.orders)


def readable(process, name):
    import select

    number = {'stdout': 1, 'stderr': 2}[name]
    pipe = process._transport.get_pipe_transport(number)
    file = pipe and pipe.get_extra_info('pipe')
    return bool(file and not file.closed and select.select([file], [], [], 0)[0])


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]


def ask_node(kernel, code):
    return json.dumps({'code': code, 'typescript': kernel.context.language == 'typescript'}).encode() + b'\n'


def ask_bash(kernel, code):
    path = f'{RUN}/{kernel.context.id}.sh'
    with open(path, 'w') as file:
        file.write(code + '\n')
    return path.encode() + b'\n'


# ---- Contexts.


class Context:
    def __init__(self, code, id, language, cwd, env, created):
        self.code, self.id, self.language, self.cwd, self.env, self.created = code, id, language, cwd, env, created
        self.kernel = None
        self.state = 'lost'
        self.lock = asyncio.Lock()

    def shown(self):
        return {'id': self.id, 'language': self.language, 'cwd': self.cwd, 'state': self.state, 'createdAt': self.created}

    def kept(self):
        return [self.id, self.language, self.cwd, self.env, self.created]

    async def start(self):
        self.state = 'starting'
        kind = LANGUAGES[self.language]
        if kind == 'python':
            kernel = Python(self, self.code.nursery)
        elif kind == 'r':
            kernel = R(self)
        elif kind == 'node':
            kernel = Small(self, ['node', '--no-warnings', f'{HERE}/node_kernel.mjs'], ask_node)
        else:
            kernel = Small(self, ['bash', '--noprofile', '--norc', f'{HERE}/bash_kernel.sh'], ask_bash)
        self.kernel = kernel
        try:
            await asyncio.wait_for(kernel.start(), START_S)
        except Exception as error:
            log('a kernel did not start', self.language, repr(error))
            await self.stop('lost')
            raise Refused('unavailable', f'The kernel of {self.language} did not start. Is there memory left for it?')
        self.state = 'idle'

    async def stop(self, state):
        kernel, self.kernel, self.state = self.kernel, None, state
        if kernel is not None:
            await kernel.end()

    async def restart(self):
        await self.stop('starting')
        async with self.lock:
            if self.kernel is None:
                await self.start()

    async def execute(self, code, env, timeout, tell):
        try:
            async with self.lock:
                if self.kernel is None:
                    raise Refused('lost', LOST)
                self.state = 'busy'
                run = asyncio.ensure_future(self.kernel.execute(code, env, tell))
                return await self.finish(run, timeout, tell)
        finally:
            if self.state == 'busy':
                self.state = 'idle'

    async def finish(self, run, timeout, tell):
        """How it ended: what the kernel says of it, or that it had to be stopped."""
        kernel, ended = self.kernel, 'done'
        try:
            await asyncio.wait([run], timeout=timeout)
        except asyncio.CancelledError:
            # Nobody waits for it any more. The next one comes when it has stopped.
            await self.force(run, kernel)
            if not run.done() and self.kernel is kernel:
                run.cancel()
                await self.stop('starting')
                await self.start()
            raise
        if not run.done():
            ended = 'timeout'
            await self.force(run, kernel)
        if self.kernel is not kernel:
            tell(type='error', name='KernelRestarted', value='The context was restarted while the code ran.', traceback=[])
            return {'end': 'died', 'count': None}
        if not run.done():
            run.cancel()
        error = None if run.cancelled() or not run.done() else run.exception()
        if run.done() and not run.cancelled() and error is None:
            return {'end': ended, 'count': run.result()}
        if error is not None and not isinstance(error, Died):
            log('a run failed', *traceback.format_exception(error))
        await self.stop('starting')
        await self.start()
        value = 'The kernel was ended and begun again: its variables are gone.'
        tell(type='error', name='KernelDied', value=value, traceback=[])
        return {'end': 'timeout' if ended == 'timeout' else 'died', 'count': None}

    async def force(self, run, kernel):
        for _ in range(2):
            kernel.interrupt()
            await asyncio.wait([run], timeout=INTERRUPT_S / 2)
            if run.done():
                return


LOST = (
    'The context is lost: the unit was started again without its memory. Restart the context to use it with no variables, '
    'or leave out `context`.'
)


class Code:
    def __init__(self):
        self.contexts = {}
        self.defaults = {}
        self.nursery = Nursery()
        self.is_adopted = not AHEAD

    def load(self):
        try:
            with open(KEPT) as file:
                for kept in json.load(file):
                    context = Context(self, *kept)
                    self.contexts[context.id] = context
        except (OSError, ValueError, TypeError):
            pass

    def keep(self):
        os.makedirs(os.path.dirname(KEPT), mode=0o700, exist_ok=True)
        with open(KEPT + '.new', 'w') as file:
            json.dump([context.kept() for context in self.contexts.values()], file)
        os.replace(KEPT + '.new', KEPT)

    def find(self, id):
        context = self.contexts.get(id)
        if context is None:
            raise Refused('not_found', f'There is no context {id[:64]} in this unit.')
        return context

    async def create(self, language='python', cwd=None, env=None, is_default=False):
        if language not in LANGUAGES:
            known = ', '.join(LANGUAGES)
            raise Refused('validation', f'`language` must be one of {known}.')
        if len(self.contexts) >= MOST_CONTEXTS:
            raise Refused('limit', f'A unit has at most {MOST_CONTEXTS} contexts: delete one.')
        created = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        context = Context(self, f'ctx_{secrets.token_hex(8)}', language, cwd or home(), env or {}, created)
        self.contexts[context.id] = context
        context.state = 'starting'
        if is_default:
            self.defaults[language] = context
        try:
            async with context.lock:
                await context.start()
        except BaseException:
            self.forget(context)
            raise
        self.keep()
        return context

    def forget(self, context):
        self.contexts.pop(context.id, None)
        if self.defaults.get(context.language) is context:
            del self.defaults[context.language]

    async def default(self, language):
        """The one that code runs in which names none. One that a start without memory has lost is made anew."""
        context = self.defaults.get(language)
        if context is not None and context.state == 'starting':
            async with context.lock:
                pass
        if context is None or context.state == 'lost':
            if context is not None:
                self.forget(context)
            return await self.create(language, is_default=True)
        return context

    def adopt(self):
        """The environment of the unit. Nobody asks for anything before the machine is one's."""
        with open('/proc/1/environ', 'rb') as file:
            pairs = [pair.partition(b'=') for pair in file.read().split(b'\0') if pair]
        env = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
        os.environ.clear()
        os.environ.update(env)
        for context in self.contexts.values():
            if context.kernel is not None:
                context.kernel.adopts = {**env, **context.env}

    async def answer(self, asked, tell):
        if asked.get('op') == 'warm':
            context = await self.default('python')
            async with context.lock:
                if context.kernel is not None:
                    await context.kernel.warm()
            return {}
        if not self.is_adopted:
            self.is_adopted = True
            self.adopt()
        op = asked.get('op')
        if op == 'list':
            return {'contexts': [context.shown() for context in self.contexts.values()]}
        if op == 'create':
            given = {name: asked[name] for name in ('language', 'cwd', 'env') if asked.get(name) is not None}
            return {'context': (await self.create(**given)).shown()}
        if op == 'run':
            return await self.run(asked, tell)
        context = self.find(asked['context'])
        if op == 'restart':
            await context.restart()
        elif op == 'interrupt':
            if context.kernel is not None and context.state == 'busy':
                context.kernel.interrupt()
        elif op == 'delete':
            self.forget(context)
            self.keep()
            await context.stop('lost')
        return {'context': context.shown()}

    async def run(self, asked, tell):
        language = asked.get('language')
        if asked.get('context') is None:
            language = language or 'python'
            if language not in LANGUAGES:
                raise Refused('validation', f'`language` must be one of {", ".join(LANGUAGES)}.')
            context = await self.default(language)
        else:
            context = self.find(asked['context'])
            if language is not None and language != context.language:
                raise Refused('validation', f'The context is one of {context.language}: leave out `language`, or name that.')
        if context.state == 'lost':
            raise Refused('lost', LOST)
        tell(type='begin', context=context.id, language=context.language)
        return {**await context.execute(asked['code'], asked.get('env'), asked['timeoutMs'] / 1000, tell), 'context': context.id}


def home():
    return '/home/user'


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


async def serve(code, reader, writer):
    told = Told(writer)
    work = gone = None
    try:
        line = await reader.readline()
        if not line:
            return
        work = asyncio.ensure_future(code.answer(json.loads(line), told))
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
    # Whoever began it may have ignored it, and what it begins would then as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.makedirs(RUN, mode=0o700, exist_ok=True)
    os.chmod(RUN, 0o700)
    for name in os.listdir(RUN):
        os.unlink(f'{RUN}/{name}')
    code = Code()
    code.load()
    os.umask(0o077)
    await asyncio.start_unix_server(lambda *ends: serve(code, *ends), f'{RUN}/socket.new', limit=REQUEST_BYTES, backlog=256)
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
