# Python kernels, forked from one process that has imported all of ipykernel: so that a kernel is there in a few milliseconds, and
# fifty of them share most of their memory. Commands and answers are lines of JSON on the descriptor 3; at its end, so do all kernels.

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

import modules

modules.use()
# A debugger that nobody attaches takes half of the time of the start; what completes words and what edits in a terminal take a
# fifth of the memory, which each kernel copies. Code may import all of them.
LEFT_OUT = ('debugpy', 'jedi', 'parso')
EMBED = 'IPython.terminal.embed'
sys.modules.update(dict.fromkeys(LEFT_OUT))
sys.modules[EMBED] = type(sys)(EMBED)
sys.modules[EMBED].embed = lambda *args, **named: importlib.import_module(EMBED).embed(*args, **named)

import ipykernel.kernelapp
from ipykernel.ipkernel import IPythonKernel
from traitlets import Type

import kernel_output
from kernel_output import Stream

for left_out in (*LEFT_OUT, EMBED):
    del sys.modules[left_out]

KB = 1024
# A sandbox gives memory in pieces of two megabytes: the ends of five stacks would take five of them.
OWN_STACK_BYTES = 512 * KB
STACK_BYTES = 8 * 1024 * KB
HERE = os.path.dirname(os.path.abspath(__file__))
# The code may have modules of these names.
OURS = ('modules', 'charts', 'kernel_output')


class Kernel(IPythonKernel):
    shell_class = Type(kernel_output.Shell)
    # The client waits for the messages as well as for the reply.
    _execute_sleep = 0

    is_quiet = False

    async def _flush_control_queue(self):
        # It only puts that channel first, which nobody uses, by a handover to another thread and back.
        pass

    def _publish_execute_input(self, *args, **named):
        # The client knows the code.
        pass

    def _publish_status(self, status, *args, **named):
        # "idle" ends what a run tells.
        if status == 'idle' and not self.is_quiet:
            super()._publish_status(status, *args, **named)
        self.is_quiet = False

    def finish_metadata(self, parent, metadata, reply_content):
        # In this order: a thread of the code may print meanwhile, which tells what is held.
        held = self.iopub_thread.take()
        told = self.iopub_thread.told
        self.is_quiet = not told
        value = held and held[0]['content']['data']
        metadata['berth'] = {'told': told, 'value': value, 'truncated': Stream.left < 0}
        return super().finish_metadata(parent, metadata, reply_content)

    async def do_execute(self, code, silent, store_history=True, user_expressions=None, *args, **kwargs):
        kernel, before = os.getpid(), None
        expressions = dict(user_expressions or {})
        env = expressions.pop('berth_env', None)
        adopts = expressions.pop('berth_adopts', None)
        self.iopub_thread.begin()
        if not silent:
            Stream.left = kernel_output.PRINTED_CHARACTERS
        if adopts is not None:
            os.environ.clear()
            os.environ.update(json.loads(adopts))
        if env is not None:
            # For this run alone.
            before = dict(os.environ)
            os.environ.update(json.loads(env))
        try:
            reply = await super().do_execute(code, silent, store_history, expressions, *args, **kwargs)
        finally:
            if before is not None:
                os.environ.clear()
                os.environ.update(before)
        if os.getpid() != kernel:
            # A child that the code forked, and that came to the end of the code: it has no kernel of its own.
            os._exit(0)
        return reply

    def start(self):
        super().start()
        # Its own threads run: those of the code are of the usual size.
        stack_size(STACK_BYTES)


ipykernel.kernelapp.IOPubThread = kernel_output.Published


class App(ipykernel.kernelapp.IPKernelApp):
    kernel_class = Type(Kernel)
    outstream_class = 'kernel_output.Stream'


def stack_size(size):
    """Of threads that begin from now on, in the code too."""
    attributes = ctypes.create_string_buffer(64)
    libc = ctypes.CDLL(None)
    libc.pthread_attr_init(attributes)
    libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size))
    libc.pthread_setattr_default_np(attributes)


def become_kernel(order):
    os.setsid()
    stack_size(OWN_STACK_BYTES)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGINT else signal.default_int_handler)
    signal.set_wakeup_fd(-1)
    os.environ.clear()
    os.environ.update(order['env'])
    try:
        os.chdir(order['cwd'])
    except OSError:
        os.chdir('/')
    sys.argv = ['python3']
    sys.path.insert(0, '')
    main = type(sys)('__main__')
    sys.modules['__main__'] = main
    app = App.instance()
    app.initialize(['-f', order['file'], '--HistoryManager.enabled=False', '--InteractiveShell.colors=NoColor', '--log-level=ERROR'])
    sys.path.remove(HERE)
    for name in OURS:
        del sys.modules[name]
    app.start()


def serve():
    control = socket.socket(fileno=3)
    control.setblocking(True)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    kernels = set()

    def say(**what):
        control.sendall(json.dumps(what).encode() + b'\n')

    # What is there by now is shared by all, and stays so: a collection would write to it.
    gc.collect()
    gc.freeze()
    say(ready=True)
    rest = b''
    while True:
        readable, _, _ = select.select([control, wake], [], [])
        if wake in readable:
            os.read(wake, 4096)
        while kernels:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            kernels.discard(pid)
            say(ended=pid, status=status)
        if control not in readable:
            continue
        piece = control.recv(65536)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b'\n')
        for line in lines:
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                control.close()
                os.close(wake)
                os.close(woken)
                try:
                    become_kernel(order)
                finally:
                    os._exit(1)
            kernels.add(pid)
            say(id=order['id'], pid=pid)
    for pid in kernels:
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


if __name__ == '__main__':
    serve()
