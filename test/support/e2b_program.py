"""A program as users of E2B write it in Python, first without and then with async. It prints what it met as one line of JSON."""

import asyncio
import json
import time

from e2b import AsyncSandbox, CommandExitException, PtySize, Sandbox, SandboxQuery


def failing(sandbox):
    try:
        sandbox.commands.run("echo before; exit 3")
    except CommandExitException as error:
        return [error.exit_code, error.stdout]


def typed(sandbox):
    command = sandbox.commands.run("cat", background=True, stdin=True)
    sandbox.commands.send_stdin(command.pid, "typed\n")
    sandbox.commands.close_stdin(command.pid)
    return command.wait().stdout


def killed(sandbox):
    command = sandbox.commands.run("sleep 1000", background=True)
    return [sandbox.commands.kill(command.pid), sandbox.commands.list()]


def shown(sandbox):
    terminal = sandbox.pty.create(PtySize(rows=20, cols=90))
    sandbox.pty.send_stdin(terminal.pid, b"stty size; exit\n")
    output = b""
    for _stdout, _stderr, data in terminal:
        output += data or b""
    return "20 90" in output.decode()


def watched(sandbox):
    watcher = sandbox.files.watch_dir("watched")
    sandbox.files.write("watched/file", "content")
    events = []
    for _ in range(100):
        events += [[event.type.value, event.name] for event in watcher.get_new_events()]
        if ["write", "file"] in events:
            break
        time.sleep(0.1)
    watcher.stop()
    return events


def sync():
    sandbox = Sandbox.create(metadata={"by": "python"}, envs={"COLOUR": "blue"}, timeout=300, request_timeout=600)
    files = sandbox.files
    files.write_files([{"path": "one", "data": "eins"}, {"path": "two", "data": b"zwei"}])
    files.make_dir("watched")
    met = {
        "run": sandbox.commands.run("echo $COLOUR; whoami").stdout,
        "failing": failing(sandbox),
        "typed": typed(sandbox),
        "killed": killed(sandbox),
        "shown": shown(sandbox),
        "read": [files.read("one"), bytes(files.read("two", format="bytes")).decode()],
        "listed": sorted(entry.name for entry in files.list(".") if not entry.name.startswith(".")),
        "moved": files.rename("one", "three").path,
        "exists": [files.exists("one"), files.exists("three")],
        "watched": watched(sandbox),
        "found": [each.sandbox_id for each in Sandbox.list(query=SandboxQuery(metadata={"by": "python"})).next_items()]
        == [sandbox.sandbox_id],
        "paused": [sandbox.pause(), sandbox.is_running()],
        "resumed": sandbox.connect().commands.run("echo back").stdout,
    }
    return {**met, "ended": [sandbox.kill(), sandbox.is_running(), sandbox.kill()]}


async def with_async():
    sandbox = await AsyncSandbox.create()
    await sandbox.files.write("file", "content")
    results = await asyncio.gather(*[sandbox.commands.run(f"echo {number}") for number in range(10)])
    met = {
        "read": await sandbox.files.read("file"),
        "commands": [result.stdout.strip() for result in results],
        "listed": [entry.name for entry in await sandbox.files.list(".") if not entry.name.startswith(".")],
    }
    return {**met, "ended": [await sandbox.kill(), await sandbox.is_running()]}


print(json.dumps({"sync": sync(), "async": asyncio.run(with_async())}))
