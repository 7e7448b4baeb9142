# What kernels of Python tell: within bounds, in few messages, and a table or a chart as data too.

import json
import sys

from ipykernel.displayhook import ZMQShellDisplayHook
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.zmqshell import ZMQDisplayPublisher, ZMQInteractiveShell
from IPython.core.formatters import JSONFormatter
from traitlets import Type

from charts import chart_of

KB = 1024
MB = 1024 * KB
# Of one value in a result, of the text that stands for a value, and of all that one run prints.
VALUE_BYTES = 4 * MB
TEXT_CHARACTERS = 64 * KB
PRINTED_CHARACTERS = 16 * MB
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
