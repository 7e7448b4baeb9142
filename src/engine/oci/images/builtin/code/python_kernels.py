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
from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
from IPython.core.formatters import JSONFormatter
from traitlets import Type

from charts import chart_of

for left_out in (*LEFT_OUT, EMBED):
    del sys.modules[left_out]

KB = 1024
MB = 1024 * KB
# Of one value in a result, of the text that stands for a value, and of all that one run prints.
VALUE_BYTES = 4 * MB
TEXT_CHARACTERS = 64 * KB
PRINTED_CHARACTERS = 16 * MB
# A sandbox gives memory in pieces of two megabytes: the ends of five stacks would take five of them.
OWN_STACK_BYTES = 512 * KB
STACK_BYTES = 8 * MB
TABLE = 'application/vnd.dataresource+json'
TABLE_ROWS = 1000
CHART = 'application/vnd.berth.chart+json'


def bounded(data):
    kept = {}
    for mime, value in data.items():
        size = len(value) if isinstance(value, (str, bytes)) else len(json.dumps(value, default=str))
        if mime == 'text/plain' and size > TEXT_CHARACTERS:
            kept[mime] = value[:TEXT_CHARACTERS] + '…'
        elif size > VALUE_BYTES * (4 / 3 if isinstance(value, bytes) else 1):
            kept.setdefault('text/plain', f'({mime} of {size} bytes was left out)')
        else:
            kept[mime] = value
    return kept


class Published(IOPubThread):
    """What a run tells while it runs. A value that it ends with goes with its reply if nothing else was told: each message here is
    handed over between four threads, which a sandbox takes a millisecond or two for."""

    def __init__(self, *args, **named):
        super().__init__(*args, **named)
        self.begin()

    def begin(self):
        self.told = False
        # At most one message, with what sends it.
        self.held = []

    def send_multipart(self, *args, **named):
        self.told = True
        self.release()
        super().send_multipart(*args, **named)

    def hold(self, message, send):
        self.release()
        if self.told:
            send(message)
        else:
            self.held.append((message, send))

    def release(self):
        if (held := self.take()) is not None:
            message, send = held
            send(message)

    def take(self):
        try:
            return self.held.pop()
        except IndexError:
            return None


class Hook(ZMQShellDisplayHook):
    def write_format_data(self, format_dict, md_dict=None):
        super().write_format_data(bounded(format_dict), md_dict)

    def finish_displayhook(self):
        sys.stdout.flush()
        sys.stderr.flush()
        message, self.msg = self.msg, None
        if message['content']['data']:
            self.pub_socket.io_thread.hold(message, self.send)

    def send(self, message):
        self.session.send(self.pub_socket, message, ident=self.topic)


class Publisher(ZMQDisplayPublisher):
    def publish(self, data, metadata=None, *args, **kwargs):
        super().publish(bounded(data), metadata, *args, **kwargs)


class Stream(OutStream):
    """What programs print, up to a limit for each run, and whatever they close."""

    left = PRINTED_CHARACTERS

    def write(self, string):
        if isinstance(string, str) and len(string) > Stream.left:
            size, string = len(string), string[: max(Stream.left, 0)]
            Stream.left = -1
            if string:
                super().write(string)
            return size
        Stream.left -= len(string)
        return super().write(string)

    sending = False

    def flush(self):
        # ipykernel does so six times a run, and each is two handovers between threads, which a sandbox takes a millisecond for.
        if self._buffer.tell() or self.sending:
            super().flush()

    def _flush(self):
        self.sending = True
        try:
            super()._flush()
        finally:
            self.sending = False

    def close(self):
        # Of the kernel's end, too: its process ends anyway.
        self.flush()


class Shell(ZMQInteractiveShell):
    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)

    def init_display_formatter(self):
        super().init_display_formatter()
        text = self.display_formatter.formatters['text/plain']
        for kind in (str, bytes, bytearray):
            text.for_type(kind, short)
        self.of_data(TABLE, 'pandas.core.frame', 'DataFrame', table)
        self.of_data(CHART, 'matplotlib.figure', 'Figure', chart_of)

    def of_data(self, mime, module, name, data_of):
        """What is of that class is shown as data, too."""

        # By no list of printers: what draws pictures takes its class out of all of them.
        class Formatter(JSONFormatter):
            format_type = mime
            print_method = '_repr_berth_data_'

            def __call__(self, value):
                if any((kind.__module__, kind.__name__) == (module, name) for kind in type(value).__mro__):
                    return data_of(value)

        self.display_formatter.formatters[mime] = Formatter(parent=self.display_formatter)


def short(value, printer, cycle):
    if len(value) <= TEXT_CHARACTERS:
        printer.text(repr(value))
    else:
        printer.text(f'{value[:TEXT_CHARACTERS]!r}… ({len(value)} in all)')


def table(frame):
    """A table as data: its columns, and its first rows. None for one that has no such form."""
    try:
        text = frame.head(TABLE_ROWS).to_json(
            orient='table', index=frame.index.name is not None, date_format='iso', default_handler=str
        )
        return {**json.loads(text), 'rows': len(frame)}
    except Exception:
        return None


class Kernel(IPythonKernel):
    shell_class = Type(Shell)
    # Whoever asks waits for the messages as well as for the reply.
    _execute_sleep = 0

    is_quiet = False

    async def _flush_control_queue(self):
        # It only puts that channel first, which nobody uses, by a handover to another thread and back.
        pass

    def _publish_execute_input(self, *args, **named):
        # Whoever asks knows the code.
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
            Stream.left = PRINTED_CHARACTERS
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


ipykernel.kernelapp.IOPubThread = Published


class App(ipykernel.kernelapp.IPKernelApp):
    kernel_class = Type(Kernel)
    outstream_class = f'{__name__}.Stream'


def stack_size(size):
    """Of threads that begin from now on, whoever begins them."""
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
    sys.modules['berth_kernel'] = sys.modules[__name__]
    App.outstream_class = 'berth_kernel.Stream'
    serve()
