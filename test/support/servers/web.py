# Serves /srv/site. Besides: /seen is every Referer that has come, /socket is a WebSocket that says everything twice
# over, and /large?MB is that many megabytes, each of which begins with its number.

import base64, hashlib, http.server, os, struct

FILLER = hashlib.sha256(b'berth').digest() * (2 ** 20 // 32)
referrers = []

class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def __init__(self, *args):
        super().__init__(*args, directory='/srv/site')

    def do_GET(self):
        referrers.append(self.headers.get('referer', ''))
        path, _, query = self.path.partition('?')
        if path == '/seen': self.answer(('\n'.join(referrers) + '\n').encode())
        elif path.endswith('/socket'): self.converse()
        elif path == '/large': self.pour(int(query))
        else: super().do_GET()

    def answer(self, body):
        self.send_response(200)
        self.send_header('content-length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pour(self, megabytes):
        self.send_response(200)
        self.send_header('content-length', str(megabytes * len(FILLER)))
        self.end_headers()
        for number in range(megabytes):
            self.wfile.write(struct.pack('>I', number) + FILLER[4:])

    # Messages of less than 63 bytes, which is all that is sent here (RFC 6455).
    def converse(self):
        key = self.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('upgrade', 'websocket')
        self.send_header('connection', 'Upgrade')
        self.send_header('sec-websocket-accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        self.close_connection = True
        while head := self.rfile.read(2):
            mask, said = self.rfile.read(4), self.rfile.read(head[1] & 127)
            if head[0] != 0x81: return
            words = bytes(byte ^ mask[index % 4] for index, byte in enumerate(said)) * 2
            self.wfile.write(bytes([0x81, len(words)]) + words)

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64

Server(('', int(os.environ['PORT'])), Handler).serve_forever()
