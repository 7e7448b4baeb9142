"""The ends of the streams that bench/streams.ts sends through a gateway and its peers.

origin                               serves streams without TLS; prints its port
transfer PORT NAME down|up BYTES     sends or receives that many bytes by TLS; prints the seconds
connect PORT NAME full|resumed SECONDS
                                     three clients open connections with one HTTP request each; prints how many
"""

import socket
import ssl
import sys
import threading
import time

PIECE = 256 * 1024
CLIENTS = 3


def origin() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def serve(connection: socket.socket) -> None:
    with connection:
        line = b""
        while not line.endswith(b"\n"):
            byte = connection.recv(1)
            if not byte:
                return
            line += byte
        direction, count = line.split()
        if direction == b"DOWN":
            send(connection, int(count))
        else:
            receive(connection, int(count))
            connection.sendall(b"+\r\n")


def send(connection: socket.socket, count: int) -> None:
    piece = memoryview(bytes(PIECE))
    while count > 0:
        connection.sendall(piece[: min(PIECE, count)])
        count -= PIECE


def receive(connection: socket.socket, count: int) -> None:
    piece = bytearray(PIECE)
    while count > 0:
        received = connection.recv_into(piece)
        if received == 0:
            raise SystemExit(f"the stream ended {count} bytes early")
        count -= received


def context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def transfer(port: int, name: str, direction: str, count: int) -> None:
    plain = socket.create_connection(("127.0.0.1", port))
    with context().wrap_socket(plain, server_hostname=name) as connection:
        began = time.monotonic()
        connection.sendall(f"{direction.upper()} {count}\r\n".encode())
        if direction == "down":
            receive(connection, count)
        else:
            send(connection, count)
            receive(connection, len(b"+\r\n"))
        print(time.monotonic() - began)


def connect(port: int, name: str, how: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    counts = [0] * CLIENTS
    resumed = [0] * CLIENTS
    failures: list[BaseException] = []
    request = f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode()

    def client(which: int) -> None:
        tls = context()
        session = None
        while time.monotonic() < end:
            plain = socket.create_connection(("127.0.0.1", port))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with tls.wrap_socket(plain, server_hostname=name, session=session) as connection:
                connection.sendall(request)
                answer = b""
                while piece := connection.recv(PIECE):
                    answer += piece
                if not answer.startswith(b"HTTP/1.1 200"):
                    raise RuntimeError(f"answered with {answer[:100]!r}")
                resumed[which] += connection.session_reused
                if how == "resumed":
                    session = connection.session
            counts[which] += 1

    def attempt(which: int) -> None:
        try:
            client(which)
        except BaseException as error:  # A thread's own would be lost.
            failures.append(error)

    threads = [threading.Thread(target=attempt, args=(which,)) for which in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(str(failures[0]))
    expected = sum(counts) - CLIENTS if how == "resumed" else 0
    if sum(resumed) != expected:
        raise SystemExit(f"{sum(resumed)} of {sum(counts)} connections were resumed")
    print(sum(counts))


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "origin":
        origin()
        return
    port, name, how, amount = rest
    if command == "transfer":
        transfer(int(port), name, how, int(amount))
    else:
        connect(int(port), name, how, float(amount))


main()
