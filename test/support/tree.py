# Runs inside a unit, as root: tree.py SEED PIPES ROOT... With a seed, each root first grows by a directory of whatever a
# file system can hold, the same for the same seed, half of it synced and half left to the kernel; PIPES says whether
# pipes and sockets are among it. Prints one line that changes with any name, kind, mode, owner, link, attribute, time
# or byte in the roots.
import errno, hashlib, os, random, socket, stat, sys

NAMES = [
    b"plain", b" leading space", b"trailing space ", b"-rf", b"new\nline", b"tab\there", b"quote'\"\\",
    b"star*?[a]", b"$(reboot)", b"\xff\xfe not utf-8", "\u00fcn\u00efc\u00f6d\u00e9 \u6f22\u5b57 \U0001f6a2".encode(),
    b".hidden", b"..dots", b"n" * 255,
]
SIZES = [0, 1, 4095, 4096, 4097, 70000]
MODES = [0o000, 0o400, 0o644, 0o755, 0o4755, 0o2711, 0o666]
OWNERS = [(0, 0), (1000, 1000), (65534, 65534), (0, 50)]


def grow(root, seed, pipes):
    pick = random.Random(seed)
    top = os.path.join(root, b"grown-%d" % seed)
    os.makedirs(top)
    for number, name in enumerate(NAMES):
        path = os.path.join(top, name)
        write(path, pick.randbytes(pick.choice(SIZES)), synced=number % 2 == 0)
        os.chown(path, *pick.choice(OWNERS))
        os.chmod(path, pick.choice(MODES))
        attributes(path, pick)
        when = pick.randrange(10**9) * 10**9 + pick.randrange(10**9)
        os.utime(path, ns=(when, when))
    os.link(os.path.join(top, b"plain"), os.path.join(top, b"hard link"))
    os.symlink(b"plain", os.path.join(top, b"relative link"))
    os.symlink(b"/nowhere/" + b"x" * 3000, os.path.join(top, b"dangling link"))
    os.symlink(b"loop", os.path.join(top, b"loop"))
    deep = os.path.join(top, *[b"deep"] * 20)
    os.makedirs(deep)
    write(os.path.join(deep, b"bottom"), pick.randbytes(100), synced=False)
    if pipes:
        os.mkfifo(os.path.join(top, b"pipe"), 0o640)
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(top)
            listener.bind("socket")
    sparse(os.path.join(top, b"sparse"), pick)
    # Replaced and removed: what was there before must not come back.
    for name, content in [(b"old", b"first"), (b"new", b"second")]:
        write(os.path.join(top, name), content, synced=True)
    os.rename(os.path.join(top, b"new"), os.path.join(top, b"old"))
    write(os.path.join(top, b"removed"), b"gone", synced=True)
    os.unlink(os.path.join(top, b"removed"))
    os.chmod(top, pick.choice([0o700, 0o1777, 0o2755]))


def write(path, content, synced):
    with open(path, "wb") as file:
        file.write(content)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def sparse(path, pick):
    with open(path, "wb") as file:
        for offset in (0, 300_000, 2_000_000):
            file.seek(offset)
            file.write(pick.randbytes(10))
        file.truncate(3_000_000)


def attributes(path, pick):
    try:
        os.setxattr(path, "user.berth", pick.randbytes(20))
    except OSError as error:
        # gVisor passes none on; that it has none must then stay so.
        if error.errno != errno.ENOTSUP:
            raise


def hash_tree(roots):
    digest, count, first_names = hashlib.sha256(), 0, {}
    for root in roots:
        pending = [root]
        while pending:
            path = pending.pop()
            status = os.lstat(path)
            kind = stat.S_IFMT(status.st_mode)
            facts = [path, oct(status.st_mode), status.st_uid, status.st_gid]
            if kind == stat.S_IFDIR:
                pending += [os.path.join(path, name) for name in sorted(os.listdir(path), reverse=True)]
            else:
                facts += [status.st_nlink, first_names.setdefault((status.st_dev, status.st_ino), path)]
            if kind == stat.S_IFLNK:
                facts.append(os.readlink(path))
            if kind == stat.S_IFREG:
                content = open(path, "rb").read()
                facts += [len(content), status.st_size, hashlib.sha256(content).hexdigest()]
                # Times that were set; a moment of writing gVisor and the host tell a few microseconds apart.
                facts += [status.st_mtime_ns] if status.st_mtime < 10**9 else []
                facts += [(name, os.getxattr(path, name)) for name in sorted(listed(path))]
            digest.update(repr(facts).encode() + b"\n")
            count += 1
    print(count, digest.hexdigest())


def listed(path):
    try:
        return os.listxattr(path)
    except OSError:
        return []


seed, pipes, *roots = [os.fsencode(argument) for argument in sys.argv[1:]]
if seed:
    for each in roots:
        grow(each, int(seed), pipes == b"yes")
hash_tree(roots)
