"""The library against the real service, as a program uses it."""

from __future__ import annotations

import io
import os
import socket
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from berth import (
    AsyncBerth,
    Berth,
    BerthError,
    CommandFailedError,
    ConnectionFailedError,
    NotFoundError,
    NotReadyError,
    TimedOutError,
    errors,
)

from conftest import CASES, IMAGE, KEY, URL


def test_a_unit_is_destroyed_at_the_end_of_its_block(berth: Berth) -> None:
    with pytest.raises(ValueError):
        with berth.units.create(IMAGE) as unit:
            assert unit.state == "running" and unit.name.startswith("node-") and "an hour" in str(unit.cost_line)
            raise ValueError
    assert berth.units.get(unit.id).state == "destroyed"


def test_a_unit_is_made_of_a_whole_description(berth: Berth) -> None:
    unit = berth.units.create(
        {"name": "py-whole", "image": IMAGE, "size": "nano", "ports": [8080, 9090]},
        stack="py",
        expose="public",
        expose_port=9090,
        env={"TOKEN": {"secret": "TOKEN"}},
    )
    assert (unit.name, unit.info["size"], unit.info["expose"]) == ("py-whole", "nano", 9090)
    assert set(unit.outputs) == {"TOKEN", "URL"} and unit.url(9090) == unit.outputs["URL"]
    assert berth.units.get(unit.id).outputs == {}
    assert unit.destroy().state == "destroyed"


def test_a_unit_stops_starts_sleeps_is_copied_and_found(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        assert unit.stop().state == "stopped"
        assert unit.start().state == "running"
        assert unit.sleep("2h").info["sleep"] == "2h"
        with unit.fork(name="py-copy") as copy:
            assert copy.info["forkedFrom"] == unit.id and copy.copied in ("memory", "disk", "config")
            found = berth.units.find("py-copy")
            assert found is not None and found.id == copy.id
        assert berth.units.find("nobody") is None


def test_a_unit_has_labels_and_an_end_and_is_found_by_them(berth: Berth) -> None:
    with berth.units.create(IMAGE, metadata={"app": "py shop"}, time_to_live="2h", at_end="sleep") as unit:
        assert [found.id for found in berth.units.list(metadata={"app": "py shop"})] == [unit.id]
        assert unit.info["atEnd"] == "sleep" and unit.info["timeToLive"] == "2h"
        changed = unit.change(metadata={}, time_to_live="never")
        assert (changed.info["metadata"], changed.info["endsAt"]) == ({}, None)


def test_files_are_streamed_moved_and_watched(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        content = b"bytes " * 500_000
        assert unit.files.write_stream("/srv/large", content, mode=0o600)["verified"]
        assert b"".join(unit.files.read_stream("/srv/large")) == content
        unit.files.move("/srv/large", "/srv/moved")
        assert unit.files.facts("/srv/moved")["mode"] == "0600"
        assert unit.files.facts("/srv/moved", user="daemon")["mode"] == "0600"
        with pytest.raises(errors.ValidationError):
            unit.files.read("/srv/moved", user="none")
        assert unit.files.make_directory("/srv/new/deep")["made"]
        heard: list[tuple[str, str]] = []
        for change in unit.files.watch("/srv"):
            heard.append((change.event, change.path))
            if change.event == "ready":
                unit.files.write("/srv/file", "x", user="daemon")
            if change.event == "create":
                break
        assert heard == [("ready", ""), ("create", "file")]


def test_processes_have_tags_and_users(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        job = unit.processes.start(["sleep", "infinity"], tag="build")
        assert [found.id for found in unit.processes.list(tag="build")] == [job.id]
        assert any(one["processId"] == job.id for one in unit.processes.table()["processes"])
        assert unit.exec(["id", "-u"], user="daemon").stdout == "1\n"


@pytest.mark.parametrize("case", CASES["commands"], ids=lambda case: str(case["command"]))
def test_a_command_has_its_output_and_its_code(berth: Berth, case: dict[str, Any]) -> None:
    with berth.units.create(IMAGE) as unit:
        options = {name: case[name] for name in ("stdin", "env", "cwd") if name in case}
        result = unit.exec(case["command"], **options)
        expected = case["result"]
        assert (result.exit_code, result.stdout, result.stderr) == (
            expected["exitCode"],
            expected["stdout"],
            expected["stderr"],
        )
        # The same as a stream.
        heard = {"stdout": "", "stderr": ""}
        command = unit.spawn(case["command"], **options)
        for stream, data in command:
            heard[stream] += data.decode()
        assert command.wait() == (expected["exitCode"], False)
        assert (heard["stdout"], heard["stderr"]) == (expected["stdout"], expected["stderr"])


def test_what_is_put_into_a_line_is_a_word(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        for word in CASES["words"]:
            assert unit.sh("echo -n {}", word).stdout == word
        assert unit.sh(r"printf '%s\n' {names}", names=["a b", "$(id)"]).stdout == "a b\n$(id)\n"
        assert unit.sh("echo {} && false", 7).exit_code == 1


def test_a_command_that_fails_or_takes_too_long_is_told_apart(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        with pytest.raises(CommandFailedError, match="ended with 1: broken") as raised:
            unit.exec("echo broken >&2; false", check=True)
        assert raised.value.result.stderr == "broken\n"
        assert unit.exec(["sleep", "infinity"], timeout=0.05).timed_out
        whole = unit.exec(["head", "-c", "2000000", "/dev/zero"], timeout=600)
        assert (len(whole.stdout), whole.truncated) == (1_048_576, True)


def test_a_command_that_prints_without_end_is_cut_off_by_its_reader(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        count = 0
        for piece in unit.spawn(["yes"]):
            count += len(piece.data)
            if count > 1_000_000:
                break
        with unit.spawn(["sleep", "infinity"]) as command:
            pass
        with pytest.raises(ConnectionFailedError):
            command.wait()


def test_files_are_text_bytes_and_streams(berth: Berth, tmp_path: Path) -> None:
    with berth.units.create(IMAGE) as unit:
        written = unit.files.write(PurePosixPath("/app/größe.txt"), "größe\n")
        assert (written["bytes"], written["verified"]) == (8, True)
        assert unit.files.read_text("/app/größe.txt") == "größe\n"
        data = os.urandom(10_000)
        (tmp_path / "local").write_bytes(data)
        for content in (data, tmp_path / "local", io.BytesIO(data)):
            unit.files.write("/app/bytes", content)
            assert unit.files.read("/app/bytes") == data
        with pytest.raises(NotFoundError):
            unit.files.read("/app/nowhere")


def test_a_directory_goes_up_and_down(berth: Berth, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep").mkdir(parents=True)
    (source / "a.txt").write_text("a")
    (source / "deep/b.txt").write_text("b")
    with berth.units.create(IMAGE) as unit:
        unit.files.upload(source, "/app")
        assert unit.files.read_text("/app/deep/b.txt") == "b"
        assert [entry["name"] for entry in unit.files.list("/app", limit=1)] == ["a.txt", "deep"]
        unit.files.unpack("/copy", unit.files.archive("/app"))
        assert unit.files.download("/copy", target) == []
        assert (target / "deep/b.txt").read_text() == "b"
        unit.files.delete("/app", recursive=True)
        with pytest.raises(NotFoundError):
            unit.files.read("/app/a.txt")


def test_an_archive_names_no_place_outside_its_directory(tmp_path: Path) -> None:
    from berth._archives import unpacked

    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        for name in ("../above", "/absolute", "a/../../b", "link/through", "fine"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    file.seek(0)
    left_out = unpacked(file, tmp_path / "in")
    assert left_out == ["link", "../above", "/absolute", "a/../../b"]
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "in",
        "in/fine",
        "in/link",
        "in/link/through",
    ]


def test_a_log_is_followed_from_line_to_line(berth: Berth) -> None:
    with berth.units.create(IMAGE, cmd=["sh", "-c", "echo one; echo two; sleep infinity"]) as unit:
        texts = []
        for line in unit.logs(follow=True):
            texts.append(line["text"])
            if len(texts) == 2:
                break
        assert texts == ["one", "two"]
        assert [line["text"] for line in unit.logs()] == ["one", "two"]


def test_a_process_takes_input_and_keeps_its_unit_awake(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        process = unit.processes.start(["cat"], stdin="first ", takes_input=True)
        assert process.keep_awake(600).info["awakeUntil"] is not None
        assert process.keep_awake(0).info["takesInput"]
        process.write("é")
        process.write(b"\xff" * 300_000)
        process.end_input()
        assert process.wait().exit_code == 0
        assert process.info["output"]["to"] == 6 + 2 + 300_000


def test_a_process_outlives_the_call_that_begins_it(berth: Berth) -> None:
    with berth.units.create(IMAGE) as unit:
        short = unit.processes.start("echo out; echo err >&2; exit 3")
        assert [(piece.stream, piece.text) for piece in short.follow()] == [("stdout", "out\n"), ("stderr", "err\n")]
        assert (short.state, short.exit_code, short.text()) == ("exited", 3, ("out\n", "err\n"))
        long = unit.processes.start(["sleep", "infinity"], cwd="/tmp")
        assert long.signal("KILL").wait().exit_code == 137
        assert [each.id for each in unit.processes.list()] == [short.id, long.id]
        assert unit.metrics()["run"]["cpu"]["limitCpus"] == 0.5
        assert next(iter(unit.follow_metrics()))["state"] == "running"
        unit.set_egress(mode="none")
        assert unit.allow_egress("a.example.com")["allow"] == ["a.example.com"]
        assert list(unit.egress_log(decision="refused")) == []
        short.delete()
        with pytest.raises(NotFoundError):
            unit.processes.get(short.id)


def test_a_terminal_takes_what_is_typed_and_has_its_output_and_its_end(berth: Berth) -> None:
    pytest.importorskip("websockets")
    with berth.units.create(IMAGE) as unit:
        with unit.terminal(columns=70, rows=7) as terminal:
            terminal.write("stty size\r")
            shown = ""
            for piece in terminal:
                shown += piece.text
                if shown.endswith("7 70\r\n$ "):
                    terminal.resize(71, 8)
                    terminal.write("stty size\rexit 4\r")
            assert "8 71" in shown
            assert terminal.wait() == (4, False)
        with unit.terminal("echo $A; echo err >&2", tty=False, env={"A": "a b=c"}, cwd="/tmp") as apart:
            assert [(piece.stream, piece.text) for piece in apart] == [("stdout", "a b=c\n"), ("stderr", "err\n")]
        with unit.terminal(["cat"], tty=False) as cat:
            cat.write(b"hi")
            cat.end()
            assert b"".join(piece.data for piece in cat) == b"hi"
        with unit.terminal(["sleep", "1000"]) as interrupted:
            interrupted.signal("INT")
            assert interrupted.wait().exit_code == 130
        closed = unit.terminal(["sleep", "1000"])
        closed.close()
        closed.close()
        with pytest.raises(ConnectionFailedError):
            closed.wait()
        with unit.terminal(session="main", env={"PLACE": "harbour"}) as first:
            first.write("echo before\r")
            next(piece for piece in first if "before\r\n" in piece.text)
        with unit.terminal(session="main") as again:
            again.write("echo at the $PLACE\rexit 5\r")
            shown = "".join(piece.text for piece in again)
            assert "before\r\n" in shown and "at the harbour\r\n" in shown
            assert again.wait().exit_code == 5
    with pytest.raises(BerthError) as gone:
        unit.terminal().wait()
    assert gone.value.code == "invalid_state"
    with pytest.raises(BerthError) as refused:
        unit.terminal(cwd="relative")
    assert refused.value.code == "validation"


@pytest.mark.anyio
async def test_a_terminal_with_async(aberth: AsyncBerth) -> None:
    pytest.importorskip("websockets")
    async with await aberth.units.create(IMAGE) as unit:
        async with await unit.terminal() as terminal:
            await terminal.write("echo typed\rexit 3\r")
            shown = "".join([piece.text async for piece in terminal])
            assert "typed\r\n" in shown
            assert (await terminal.wait()).exit_code == 3


def test_stacks_recipes_and_records(berth: Berth) -> None:
    stack = berth.stacks.create("py-stack")
    for name in ("a", "b", "c"):
        berth.units.create(IMAGE, name=name, stack=stack.name)
    assert sorted(unit.name for unit in berth.units.list(stack="py-stack", limit=2)) == ["a", "b", "c"]
    assert len(berth.units.list(limit=2).page().items) == 2
    fork = stack.fork(into="py-fork")
    assert fork.stack == "py-fork" and len(fork.units) == 3
    for made in ("py-fork", "py-stack"):
        found = berth.stacks.find(made)
        assert found is not None and len(found.units) == 3
        found.destroy()

    run = berth.recipes.run("postgres", params={"database": "shop"}, stack="py-db")
    assert run.outputs["DATABASE_URL"].startswith("postgres://") and run.unit.state == "running"
    run.unit.destroy()
    assert "postgres" in [recipe["name"] for recipe in berth.recipes.list()]
    assert berth.recipes.get("postgres")["name"] == "postgres"

    assert berth.quota()["units"]["max"] > 0
    assert len(berth.usage(days=3)["days"]) == 3
    assert "small" in [size["size"] for size in berth.pricing()["sizes"]]
    assert berth.agents()["agents"] and berth.keys()
    newest = next(iter(berth.audit(limit=2)))
    assert (newest["agentName"], newest["agentVersion"]) == ("berth-sdk", "0.1.0")


def test_errors_and_timeouts_are_told_apart(berth: Berth) -> None:
    with pytest.raises(errors.ValidationError) as raised:
        berth.units.create("NOT AN IMAGE")
    assert raised.value.details[0]["path"] == "spec.image" and raised.value.request_id
    with pytest.raises(NotFoundError, match=r'units\.find\("py-nobody"\) takes a name'):
        berth.units.get("py-nobody")
    assert repr(berth.units.list()) == "<Pages: iterate over it, or call all()>"
    with pytest.raises(errors.UnauthorizedError):
        Berth(URL, "berth_live_wrong").quota()
    with pytest.raises(ConnectionFailedError):
        Berth("http://127.0.0.1:9", KEY, retries=0).quota()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(TimedOutError) as late:
            Berth(f"http://127.0.0.1:{silent.getsockname()[1]}", KEY, timeout=0.05).quota()
    assert not isinstance(late.value, NotReadyError)


@pytest.mark.anyio
async def test_the_library_with_async_does_the_same(aberth: AsyncBerth, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    events = aberth.events(changes=True)
    assert (await events.__anext__()).event == "reset"
    async with await aberth.units.create(IMAGE, name="py-async") as unit:
        told = set[str]()
        async for event in events:
            if event.event == "unit" and event.data["name"] == "py-async":
                told.add("unit")
            if event.event == "change" and event.data["action"] == "unit.create":
                assert "created py-async " in event.data["sentence"]
                told.add("change")
            if len(told) == 2:
                break
        assert (await unit.exec("echo hello")).stdout == "hello\n"
        command = await unit.spawn("echo out; echo err >&2")
        assert [piece.text async for piece in command] == ["out\n", "err\n"]
        assert await command.wait() == (0, False)
        await unit.files.upload(tmp_path, "/app")
        assert await unit.files.download("/app", tmp_path / "copy") == []
        assert (tmp_path / "copy/a.txt").read_text() == "a"
        process = await unit.processes.start("echo late")
        assert [piece.text async for piece in process.follow()] == ["late\n"]
        async with await unit.fork() as copy:
            assert copy.id in [each.id async for each in aberth.units.list(limit=1)]
        assert unit.id in [each.id for each in await aberth.units.list().all()]
        assert unit.id in [each.id for each in await aberth.units.list()]
    assert (await aberth.units.get(unit.id)).state == "destroyed"


def test_a_secret_is_kept_bound_and_deleted(berth: Berth) -> None:
    kept = berth.secrets.put("PY_KEY", "sk-1", hosts=["api.example.com"])
    assert kept["placeholder"].startswith("berth_secret_")
    with berth.units.create(IMAGE, env={"KEY": {"teamSecret": "PY_KEY"}}) as unit:
        assert unit.exec(["printenv", "KEY"]).stdout.strip() == kept["placeholder"]
        assert [(each["name"], each["units"]) for each in berth.secrets.list()] == [("PY_KEY", 1)]
        assert [each["id"] for each in berth.secrets.delete("PY_KEY")] == [unit.id]
    with pytest.raises(NotFoundError):
        berth.secrets.delete("PY_KEY")


def test_units_are_counted_by_state(berth: Berth) -> None:
    with berth.units.create(IMAGE, stack="py-counted"):
        counted = berth.units.summary(stack="py-counted", state=["running", "sleeping"])
        assert (counted["total"], counted["byState"].get("running")) == (1, 1)
        assert berth.units.summary(stack="py-counted", state="error")["total"] == 0
