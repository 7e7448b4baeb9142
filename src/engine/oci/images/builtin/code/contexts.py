# Contexts: a kernel each, with its variables. Which there were is kept on the disk: what a start finds there is lost, and says so.

import asyncio
import json
import os
import secrets
import time
import traceback

from jupyter_kernels import Nursery, Python, R
from kernel import START_S, Died, log
from small_kernels import Bash, Node

KEPT = '/var/lib/berth-code/contexts.json'
HOME = '/home/user'
MAX_CONTEXTS = 64
# A kernel that goes on after an interrupt is ended.
INTERRUPT_S = 5
KINDS = {'python': Python, 'javascript': Node, 'typescript': Node, 'bash': Bash, 'r': R}
LOST = (
    'The context is lost: the unit was started again without its memory. Restart the context to use it with no variables, '
    'or leave out `context`.'
)


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Context:
    def __init__(self, nursery, id, language, cwd, env, created):
        self.nursery, self.id, self.language, self.cwd, self.env, self.created = nursery, id, language, cwd, env, created
        self.kernel = None
        self.state = 'lost'
        self.lock = asyncio.Lock()

    def shown(self):
        return {'id': self.id, 'language': self.language, 'cwd': self.cwd, 'state': self.state, 'createdAt': self.created}

    def kept(self):
        return [self.id, self.language, self.cwd, self.env, self.created]

    async def start(self):
        self.state = 'starting'
        kind = KINDS[self.language]
        kernel = kind(self, self.nursery) if kind is Python else kind(self)
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


class Contexts:
    def __init__(self, is_adopted):
        self.contexts = {}
        self.defaults = {}
        self.nursery = Nursery()
        self.is_adopted = is_adopted

    def load(self):
        try:
            with open(KEPT) as file:
                for kept in json.load(file):
                    context = Context(self.nursery, *kept)
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
        if language not in KINDS:
            known = ', '.join(KINDS)
            raise Refused('validation', f'`language` must be one of {known}.')
        if len(self.contexts) >= MAX_CONTEXTS:
            raise Refused('limit', f'A unit has at most {MAX_CONTEXTS} contexts: delete one.')
        created = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        context = Context(self.nursery, f'ctx_{secrets.token_hex(8)}', language, cwd or HOME, env or {}, created)
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
        """The one that code runs in which names none. One that a start without memory has lost is made again."""
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
            if language not in KINDS:
                raise Refused('validation', f'`language` must be one of {", ".join(KINDS)}.')
            context = await self.default(language)
        else:
            context = self.find(asked['context'])
            if language is not None and language != context.language:
                raise Refused('validation', f'The context is one of {context.language}: leave out `language`, or name that.')
        if context.state == 'lost':
            raise Refused('lost', LOST)
        tell(type='begin', context=context.id, language=context.language)
        return {**await context.execute(asked['code'], asked.get('env'), asked['timeoutMs'] / 1000, tell), 'context': context.id}
