# Speaks Bolt 5.0 as far as a client of Neo4j needs to run `RETURN 7`, and answers so to every query.

import socketserver, struct

MAGIC = bytes.fromhex('6060b017')
HELLO, RUN, PULL = 0x01, 0x10, 0x3f
text = lambda value: bytes([0x80 + len(value)]) + value.encode()
success = lambda **fields: b'\xb1\x70' + bytes([0xa0 + len(fields)]) + b''.join(
    text(name) + value for name, value in fields.items())

class Session(socketserver.StreamRequestHandler):
    def handle(self):
        if self.rfile.read(4) != MAGIC: return
        self.rfile.read(16)
        self.wfile.write(bytes([0, 0, 0, 5]))
        while message := self.message():
            kind = message[1]
            if kind == HELLO: self.say(success(server=text('Neo4j/5.0.0'), connection_id=text('one')))
            elif kind == RUN: self.say(success(fields=b'\x91' + text('answer')))
            elif kind == PULL:
                self.say(b'\xb1\x71\x91\x07')
                self.say(success())
            else: self.say(success())

    def message(self):
        whole = b''
        while head := self.rfile.read(2):
            size = struct.unpack('>H', head)[0]
            if size == 0 and whole: return whole
            whole += self.rfile.read(size)

    def say(self, message):
        self.wfile.write(struct.pack('>H', len(message)) + message + b'\0\0')

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

Server(('', 7687), Session).serve_forever()
