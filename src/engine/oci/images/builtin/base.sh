#!/bin/sh
# The entry of the image, and its `sudo`. No program of a unit gains privileges by being executed, so the usual sudo cannot
# work: this one asks a process of root, which the first call starts, to run the command with the caller's own streams. Who
# may ask is decided by the mode of its socket: members of the group `sudo`.
set -eu

directory=/run/sudo

# What both ends are. The socket brings the caller's streams, and then the numbers of signals; it takes the exit code back.
program=$(
  cat <<'EOT'
import json, os, pwd, grp, signal, socket, struct, sys, threading, time

DIRECTORY = '/run/sudo'
SOCKET = DIRECTORY + '/socket'
SEARCH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
KEPT = ('TERM', 'LANG', 'LANGUAGE', 'COLORTERM', 'TZ')
WITH_VALUE = ('-u', '--user', '-g', '--group', '-p', '--prompt', '-D', '--chdir', '-h', '--host', '-C', '-T')
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
MAX_BYTES = 4 * 1024 * 1024


def receive(connection, count, start=b''):
    data = start
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            os._exit(1)
        data += piece
    return data


def serve():
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(SOCKET + '.new')
    os.chown(SOCKET + '.new', 0, grp.getgrnam('sudo').gr_gid)
    os.chmod(SOCKET + '.new', 0o660)
    server.listen(64)
    os.rename(SOCKET + '.new', SOCKET)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(connection)
        connection.close()


def answer(connection):
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    (length,) = struct.unpack('!I', receive(connection, 4, head))
    if len(streams) != 3 or length > MAX_BYTES:
        os._exit(1)
    asked = json.loads(receive(connection, length))
    child = os.fork()
    if child == 0:
        become(asked, streams, connection)
    threading.Thread(target=relay, args=(connection, child), daemon=True).start()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def relay(connection, child):
    while True:
        number = connection.recv(1)
        try:
            os.killpg(child, number[0] if number else signal.SIGHUP)
        except ProcessLookupError:
            return
        if not number:
            return


def become(asked, streams, connection):
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in [*streams, connection.fileno()]:
        if stream > 2:
            os.close(stream)
    try:
        user = pwd.getpwnam(asked['user'])
        os.initgroups(user.pw_name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
        os.chdir(asked['cwd'] or user.pw_dir)
        os.execvpe(asked['command'][0], asked['command'], asked['env'])
    except (OSError, KeyError) as error:
        print(f"sudo: {asked['command'][0]}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def ask(args):
    asked = read(args)
    if os.getuid() == 0:
        os.chdir(asked['cwd'] or '/root')
        become_as_root(asked)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        begin()
        connection.connect(SOCKET)
    except OSError as error:
        print(f'sudo: {error}', file=sys.stderr)
        sys.exit(1)
    for number in PASSED_ON:
        signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    text = json.dumps(asked).encode()
    socket.send_fds(connection, [struct.pack('!I', len(text))], [0, 1, 2])
    connection.sendall(text)
    code = connection.recv(1)
    sys.exit(code[0] if code else 1)


def begin():
    if os.path.exists(SOCKET):
        return
    try:
        start = os.open(DIRECTORY + '/start', os.O_WRONLY | os.O_NONBLOCK)
        os.write(start, b'\n')
    except OSError:
        # Another call has just done so.
        pass
    for _ in range(500):
        if os.path.exists(SOCKET):
            return
        time.sleep(0.02)


def become_as_root(asked):
    user = pwd.getpwnam(asked['user'])
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    try:
        os.execvpe(asked['command'][0], asked['command'], asked['env'])
    except OSError as error:
        print(f"sudo: {asked['command'][0]}: {error}", file=sys.stderr)
        sys.exit(1)


def read(args):
    user, flags, args = 'root', '', list(args)
    while args and args[0].startswith('-'):
        option = args.pop(0)
        if option == '--':
            break
        if option in WITH_VALUE:
            value = args.pop(0) if args else ''
            user = value if option in ('-u', '--user') else user
        elif option.startswith('--user='):
            user = option[len('--user='):]
        elif option.startswith('-u'):
            user = option[2:]
        else:
            flags += {'--login': 'i', '--shell': 's', '--preserve-env': 'E', '--validate': 'v'}.get(option, option[1:])
    given = {}
    while args and '=' in args[0] and args[0].split('=')[0].isidentifier():
        name, value = args.pop(0).split('=', 1)
        given[name] = value
    if not args and not set(flags) & set('is'):
        if set(flags) & set('vkKl'):
            sys.exit(0)
        print('usage: sudo [-u user] [-E] [-i | -s] [NAME=value …] command', file=sys.stderr)
        sys.exit(1)
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        print(f'sudo: unknown user {user}', file=sys.stderr)
        sys.exit(1)
    caller = pwd.getpwuid(os.getuid())
    own = {name: value for name, value in os.environ.items() if 'E' in flags or name in KEPT or name.startswith('LC_')}
    env = {**own, 'PATH': SEARCH, 'HOME': entry.pw_dir, 'USER': user, 'LOGNAME': user, 'SHELL': entry.pw_shell,
           'SUDO_USER': caller.pw_name, 'SUDO_UID': str(caller.pw_uid), 'SUDO_GID': str(caller.pw_gid),
           'SUDO_COMMAND': ' '.join(args), **given}
    command = args
    if set(flags) & set('is'):
        login = ['-l'] if 'i' in flags else []
        command = [entry.pw_shell, *login, *(['-c', ' '.join(args)] if args else [])]
    return {'user': user, 'cwd': None if 'i' in flags else os.getcwd(), 'env': env, 'command': command}


if sys.argv[1] == 'serve':
    serve()
else:
    ask(sys.argv[2:])
EOT
)

case ${0##*/} in
  sudo) exec python3 -I -S -c "$program" ask "$@" ;;
esac

# Waits, at no cost, for the first call of sudo.
mkdir -p $directory
rm -f $directory/start $directory/socket $directory/socket.new
mkfifo -m 0620 $directory/start
chgrp sudo $directory/start
(
  read -r _ <$directory/start
  exec python3 -I -S -c "$program" serve
) </dev/null >/dev/null 2>&1 &
exec "$@"
