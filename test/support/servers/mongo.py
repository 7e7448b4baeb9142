# Speaks what a client of MongoDB says first (hello, in its old and its new form, and ping), and nothing else.

import socketserver, struct, threading

def encode(document):
    body = b''
    for name, value in document.items():
        key = name.encode() + b'\0'
        if isinstance(value, bool): body += b'\x08' + key + bytes([value])
        elif isinstance(value, int): body += b'\x10' + key + struct.pack('<i', value)
        else: body += b'\x01' + key + struct.pack('<d', value)
    return struct.pack('<i', len(body) + 5) + body + b'\0'

HELLO = encode({
    'ismaster': True, 'isWritablePrimary': True, 'helloOk': True, 'readOnly': False,
    'maxBsonObjectSize': 16777216, 'maxMessageSizeBytes': 48000000, 'maxWriteBatchSize': 100000,
    'minWireVersion': 0, 'maxWireVersion': 21, 'ok': 1.0,
})
OK = encode({'ok': 1.0})
OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013

class Session(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.rfile.read(16):
            length, request, _, operation = struct.unpack('<iiii', head)
            body = self.rfile.read(length - 16)
            if operation == OP_QUERY:
                self.say(request, OP_REPLY, struct.pack('<iqii', 0, 0, 0, 1) + HELLO)
            elif operation == OP_MSG:
                # Flags, the kind of section, the document's length and its first type: then the command's name.
                command = body[10:body.index(b'\0', 10)].decode()
                document = HELLO if command in ('hello', 'ismaster', 'isMaster') else OK
                self.say(request, OP_MSG, struct.pack('<iB', 0, 0) + document)
            else:
                return

    def say(self, request, operation, body):
        self.wfile.write(struct.pack('<iiii', len(body) + 16, 0, request, operation) + body)

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

Server(('', 27017), Session).serve_forever()
