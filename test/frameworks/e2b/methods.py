"""Calls every method of the library, with its plain classes or, for the argument `async`, with the others. It prints what it met as
one line of JSON."""

import asyncio
import inspect
import json
import sys
import uuid

import e2b

IS_ASYNC = sys.argv[1] == "async"
PREFIX = "Async" if IS_ASYNC else ""
Sandbox, Template, Volume, Secret = (getattr(e2b, PREFIX + name) for name in ("Sandbox", "Template", "Volume", "Secret"))
REPOSITORY = "/home/user/repository"
AUTHOR = {"author_name": "Agent", "author_email": "agent@example.test"}


async def got(value):
    return await value if inspect.isawaitable(value) else value


async def refused(call):
    """The name of the exception, which is what programs tell them apart by."""
    try:
        await got(call())
        return None
    except Exception as error:
        return type(error).__name__


async def until(check):
    for _ in range(100):
        if found := await got(check()):
            return found
        await asyncio.sleep(0.1)
    raise TimeoutError("it did not come true")


async def commands(sandbox):
    run = sandbox.commands
    printed = []
    seen = await got(run.run("echo out; echo err >&2", on_stdout=printed.append, on_stderr=printed.append))
    typed = await got(run.run("cat", background=True, stdin=True))
    await got(run.send_stdin(typed.pid, "typed\n"))
    await got(run.close_stdin(typed.pid))
    streamed = await got(run.run("cat", background=True, stdin=True))
    await stream(run, streamed.pid, "one\n", b"two\n")
    await got(run.close_stdin(streamed.pid))
    waiting = await got(run.run("sleep 1000", background=True))
    listed = [each.pid for each in await got(run.list())]
    attached = await got(run.connect(waiting.pid))
    killed = [await got(run.kill(waiting.pid)), await got(run.kill(waiting.pid))]
    return {
        "result": [seen.stdout, seen.stderr, seen.exit_code],
        "printed": sorted(str(each) for each in printed),
        "typed": (await got(typed.wait())).stdout,
        "streamed": (await got(streamed.wait())).stdout,
        "listed": waiting.pid in listed,
        "attached": await refused(attached.wait),
        "killed": killed,
        "places": (await got(run.run("pwd; whoami; echo $A", cwd="/tmp", user="root", envs={"A": "b"}))).stdout,
        "refused": [
            await refused(lambda: run.run("exit 3")),
            await refused(lambda: run.run("sleep 10", timeout=1)),
            await refused(lambda: run.run("true", user="stranger")),
            await refused(lambda: run.connect(999_999)),
            await refused(lambda: run.send_stdin(999_999, "x")),
        ],
    }


async def stream(to, pid, *pieces):
    if not IS_ASYNC:
        return to.stream_input(pid, pieces)
    async with to.stream_input(pid) as handle:
        for piece in pieces:
            await handle.send(piece)


async def terminals(sandbox):
    pty = sandbox.pty
    output = []
    shown = lambda data: output.append(bytes(data).decode())
    size = e2b.PtySize(rows=20, cols=90)
    terminal = await got(pty.create(size, **({"on_data": shown} if IS_ASYNC else {})))
    await stream(pty, terminal.pid, b"echo stre''amed\n")
    await got(pty.resize(terminal.pid, e2b.PtySize(rows=21, cols=91)))
    await got(pty.send_stdin(terminal.pid, b"stty size; exit 5\n"))
    ended = await refused(lambda: terminal.wait(**({} if IS_ASYNC else {"on_pty": shown})))
    again = await got(pty.create(size, **({"on_data": shown} if IS_ASYNC else {})))
    connected = await got(pty.connect(again.pid, **({"on_data": shown} if IS_ASYNC else {})))
    killed = [connected.pid == again.pid, await got(pty.kill(again.pid)), await got(pty.kill(again.pid))]
    text = "".join(output)
    return {"shown": [part in text for part in ("21 91", "streamed")], "ended": ended, "killed": killed}


async def files(sandbox):
    fs = sandbox.files
    written = await got(fs.write("notes/one", "eins", metadata={"author": "Ann"}))
    many = await got(fs.write_files([{"path": "two", "data": b"zwei"}, {"path": "notes/three", "data": "drei"}]))
    stream = b""
    pieces_read = await got(fs.read("two", format="stream"))
    if IS_ASYNC:
        async for piece in pieces_read:
            stream += piece
    else:
        for piece in pieces_read:
            stream += piece
    info = await got(fs.get_info("notes/one"))
    met = {
        "written": [written.path, written.name, [each.path for each in many]],
        "read": [await got(fs.read("notes/one")), bytes(await got(fs.read("two", format="bytes"))).decode(), stream.decode()],
        "info": [info.size, info.mode, info.permissions, info.owner, info.type.value, info.metadata],
        "made": [await got(fs.make_dir("made/below")), await got(fs.make_dir("made/below"))],
        "listed": sorted(each.path for each in await got(fs.list("made", depth=2))),
        "renamed": (await got(fs.rename("two", "made/moved"))).path,
        "exists": [await got(fs.exists("two")), await got(fs.exists("made/moved"))],
        "watched": await watched(fs),
        "refused": [
            await refused(lambda: fs.read("nothing")),
            await refused(lambda: fs.read("/tmp")),
            await refused(lambda: fs.list("nothing")),
            await refused(lambda: fs.rename("nothing", "else")),
            await refused(lambda: fs.get_info("nothing")),
            await refused(lambda: fs.watch_dir("nothing", **({"on_event": print} if IS_ASYNC else {}))),
            await refused(lambda: fs.list("made", depth=0)),
            await refused(lambda: fs.read("notes/one", user="stranger")),
        ],
    }
    await got(fs.remove("made"))
    return {**met, "removed": await got(fs.exists("made"))}


async def watched(fs):
    events = []
    note = lambda event: events.append([event.type.value, event.name])
    if IS_ASYNC:
        handle = await fs.watch_dir("made", on_event=note, recursive=True)
    else:
        handle = fs.watch_dir("made", recursive=True)
    await got(fs.write("made/below/new", "new"))

    def look():
        if not IS_ASYNC:
            for event in handle.get_new_events():
                note(event)
        return ["write", "below/new"] in events

    await until(look)
    await got(handle.stop())
    return sorted(events)


async def repositories(sandbox):
    git = sandbox.git
    await got(git.init("/home/user/origin.git", bare=True, initial_branch="main"))
    await got(git.init(REPOSITORY, initial_branch="main"))
    await got(git.configure_user("Agent", "agent@example.test"))
    await got(git.set_config("pull.rebase", "false", scope="local", path=REPOSITORY))
    await got(sandbox.files.write(f"{REPOSITORY}/file", "one"))
    before = await got(git.status(REPOSITORY))
    await got(git.add(REPOSITORY))
    await got(git.commit(REPOSITORY, "First", **AUTHOR))
    await got(git.remote_add(REPOSITORY, "origin", "/home/user/origin.git"))
    await got(git.push(REPOSITORY, remote="origin", branch="main"))
    await got(git.clone("/home/user/origin.git", "/home/user/clone"))
    await got(git.create_branch(REPOSITORY, "other"))
    await got(git.checkout_branch(REPOSITORY, "main"))
    branches = await got(git.branches(REPOSITORY))
    await got(git.delete_branch(REPOSITORY, "other", force=True))
    await got(sandbox.files.write(f"{REPOSITORY}/file", "two"))
    await got(git.restore(REPOSITORY, ["file"]))
    await got(sandbox.files.write(f"{REPOSITORY}/file", "three"))
    await got(git.add(REPOSITORY, files=["file"]))
    await got(git.reset(REPOSITORY, mode="hard"))
    await got(git.dangerously_authenticate("agent", "a-token", host="git.example.test"))
    await got(git.pull("/home/user/clone", remote="origin", branch="main"))
    return {
        "before": [before.has_untracked, before.is_clean],
        "after": (await got(git.status(REPOSITORY))).is_clean,
        "branches": [sorted(branches.branches), branches.current_branch],
        "remote": await got(git.remote_get(REPOSITORY, "origin")),
        "config": await got(git.get_config("pull.rebase", scope="local", path=REPOSITORY)),
        "content": await got(sandbox.files.read(f"{REPOSITORY}/file")),
        "refused": await refused(lambda: git.clone("/home/user/nowhere.git", "/home/user/none")),
    }


async def life(sandbox):
    label = str(uuid.uuid4())
    own = await got(Sandbox.create(metadata={"label": label}, timeout=120, idempotency_key=label))
    info = await got(own.get_info())
    await got(own.set_timeout(600))
    await got(Sandbox.set_timeout(own.sandbox_id, 700))
    later = await got(Sandbox.get_info(own.sandbox_id))
    found = Sandbox.list(query=e2b.SandboxQuery(metadata={"label": label}))
    listed = [each.sandbox_id for each in await got(found.next_items())]
    await got(own.update_network({"allow_out": ["example.com"], "deny_out": [e2b.ALL_TRAFFIC]}))
    samples = await got(own.get_metrics())
    await got(own.files.write("kept", "before"))
    snapshot = await got(own.create_snapshot(name=f"s-{label}"))
    disk_alone = await got(own.create_snapshot(mode="filesystem"))
    named = await got(own.list_snapshots().next_items())
    forks = await got(own.fork(count=2))
    paused = [await got(own.pause()), await got(own.pause()), await got(own.is_running())]
    refusals = [await refused(lambda: own.commands.run("true")), await refused(lambda: own.files.read("kept"))]
    await got(Sandbox.connect(own.sandbox_id, timeout=300))
    await got(own.pause(mode="filesystem"))
    await got(own.connect(on_resume="reboot"))
    copy = await got(Sandbox.create(disk_alone.snapshot_id))
    other = await got(Sandbox.create(snapshot.names[0]))
    met = {
        "info": [info.template_id, info.metadata == {"label": label}, info.state.value],
        "longer": (later.end_at - info.end_at).total_seconds() > 400,
        "listed": listed == [own.sandbox_id],
        "metrics": [samples[0].mem_total > 0, samples[0].cpu_count > 0],
        "snapshots": len(named),
        "forks": [isinstance(each, Sandbox) and await got(each.files.read("kept")) for each in forks],
        "copies": [await got(copy.files.read("kept")), await got(other.files.read("kept"))],
        "paused": paused,
        "refused": refusals,
        "kept": await got(own.files.read("kept")),
        "host": own.get_host(3000).startswith(f"3000-{own.sandbox_id}"),
        "urls": ["signature=" in own.upload_url("a"), "signature=" in own.download_url("a")],
        "deleted": [
            await got(Sandbox.delete_snapshot(snapshot.snapshot_id)),
            await got(Sandbox.delete_snapshot(disk_alone.snapshot_id)),
            await got(Sandbox.delete_snapshot(snapshot.snapshot_id)),
        ],
    }
    for each in [*forks, copy, other]:
        await got(each.kill())
    ended = [await got(own.kill()), await got(Sandbox.kill(own.sandbox_id)), await got(own.is_running())]
    gone = [
        await refused(lambda: own.commands.run("true")),
        await refused(lambda: own.get_info()),
        await refused(lambda: own.files.read("kept")),
        await refused(lambda: Sandbox.connect(own.sandbox_id)),
    ]
    return {**met, "ended": ended, "gone": gone}


async def others(sandbox):
    volume = await got(Volume.create(f"v-{uuid.uuid4()}"))
    await got(volume.write_file("/a/b", "text"))
    await got(volume.make_dir("/made"))
    await got(volume.update_metadata("/a/b", mode=0o600))
    entry = await got(volume.get_info("/a/b"))
    again = await got(Volume.connect(volume.volume_id))
    listed = [each.volume_id for each in await got(Volume.list())]
    content = [
        await got(again.read_file("/a/b")),
        [each.path for each in await got(volume.list("/"))],
        [entry.size, entry.mode],
        volume.volume_id in listed,
    ]
    await got(volume.remove("/a"))
    missing = [await got(volume.exists("/a")), await refused(lambda: volume.read_file("/a/b"))]
    await got(Secret.create("openai-api-key", "sk-0123456789"))
    await got(Secret.update("openai-api-key", "sk-9876543210"))
    secrets = [each.name for each in await got(Secret.list().next_items())]
    kept = [await got(Secret.exists("openai-api-key")), (await got(Secret.get_info("openai-api-key"))).name]
    return {
        "volume": content,
        "missing": missing,
        "destroyed": [await got(Volume.destroy(volume.volume_id)), await got(Volume.destroy(volume.volume_id))],
        "secrets": [secrets, kept, await got(Secret.destroy("openai-api-key")), await got(Secret.destroy("openai-api-key"))],
    }


async def main():
    sandbox = await got(Sandbox.create(timeout=600, request_timeout=600))
    met = {}
    only = sys.argv[2:]
    for part in (commands, terminals, files, repositories, life, others):
        if not only or part.__name__ in only:
            met[part.__name__] = await part(sandbox)
    await got(sandbox.kill())
    print(json.dumps(met))


asyncio.run(main())
