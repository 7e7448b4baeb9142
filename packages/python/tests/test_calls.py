"""What a call does on its way: from the table that the TypeScript library is tested by as well."""

from __future__ import annotations

import importlib
import inspect
import json
import typing
from pathlib import Path
from typing import Any

import pytest

from berth import AsyncBerth, Berth, BerthError, ConnectionFailedError, errors, types
from berth._calls import EventDecoder
from berth._waiting import http

from conftest import CASES

UNIT = {"id": "unit_1", "name": "one", "state": "running", "endpoints": []}
ANSWER = {"units": [UNIT], "outputs": {}, "costLine": "", "id": "unit_1", "name": "one", "state": "running"}


def through(answer: Any, **options: Any) -> tuple[Berth, list[Any]]:
    """A client whose calls meet `answer`, and the calls."""
    sent: list[Any] = []

    def handle(request: Any) -> Any:
        sent.append(request)
        return answer(request)

    client = http().Client(transport=http().MockTransport(handle))
    return Berth("https://berth.example", "k", http_client=client, **options), sent


def answering(status: int | None, body: str, headers: dict[str, str] | None = None) -> Any:
    def handle(request: Any) -> Any:
        if status is None:
            raise http().ReadError("connection reset", request=request)
        return http().Response(status, headers=headers or {}, text=body)

    return handle


@pytest.mark.parametrize("case", CASES["errors"], ids=lambda case: f"{case['status']} {case['body']}")
def test_an_answer_that_is_no_success_is_an_error_with_its_code(case: dict[str, Any]) -> None:
    berth, _ = through(answering(case["status"], case["body"], {"x-request-id": "r1"}), retries=0)
    with pytest.raises(BerthError) as raised:
        berth.quota()
    error = raised.value
    assert (error.code, error.status, error.request_id) == (case["code"], case["status"], "r1")
    assert type(error) is errors.classes.get(case["code"], BerthError)


def test_every_code_of_the_service_has_a_class() -> None:
    own = {"not_configured", "connection_failed", "timed_out", "command_failed"}
    assert set(errors.classes) == set(typing.get_args(types.ErrorCode)) | own


@pytest.mark.parametrize(
    "case", CASES["retries"], ids=lambda case: f"{case['call']} {case['status']} {case.get('retryAfter', '')}"
)
def test_a_call_is_sent_again_only_where_that_cannot_do_it_twice(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    body = json.dumps({"error": {"code": "unavailable", "message": "Later."}})
    headers = {"retry-after": case.get("retryAfter", "0")}
    trouble = answering(case["status"], body, headers)
    healthy = {"is": True}
    fine = answering(200, json.dumps(ANSWER))
    berth, sent = through(lambda request: (fine if healthy["is"] else trouble)(request))
    unit = berth.units.create("an/image")
    healthy["is"] = False
    sent.clear()
    calls = {
        "read": berth.quota,
        "destroy": unit.destroy,
        "write": lambda: unit.files.write("/x", b"x"),
        "create": lambda: berth.units.create("an/image"),
        "exec": lambda: unit.exec(["true"]),
        "stop": unit.stop,
    }
    with pytest.raises(BerthError):
        calls[case["call"]]()
    assert len(sent) == case["attempts"]
    keys = {request.headers.get("idempotency-key") for request in sent}
    assert len(keys) == 1
    assert (keys == {None}) is (case["call"] != "create")


@pytest.mark.parametrize("case", CASES["events"], ids=lambda case: case["chunks"][0])
def test_events_are_read_however_their_bytes_are_cut(case: dict[str, Any]) -> None:
    whole = "".join(case["chunks"]).encode()
    for chunks in ([chunk.encode() for chunk in case["chunks"]], [whole[at : at + 1] for at in range(len(whole))]):
        decoder = EventDecoder()
        assert [list(event) for chunk in chunks for event in decoder.feed(chunk)] == case["events"]


@pytest.mark.parametrize("case", CASES["settings"], ids=lambda case: json.dumps([case["env"], case["options"]]))
def test_the_service_and_its_key_are_found(
    case: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if case.get("file"):
        told = {"baseUrl": "http://127.0.0.1:7070", "apiKey": "berth_live_file"}
        (tmp_path / "credentials.json").write_text(json.dumps(told))
        monkeypatch.setenv("BERTH_DATA_DIR", str(tmp_path))
    for name, value in case["env"].items():
        monkeypatch.setenv(name, value)
    sent: list[Any] = []

    def handle(request: Any) -> Any:
        sent.append(request)
        return http().Response(200, text="{}")

    client = http().Client(transport=http().MockTransport(handle))
    options = {"url": case["options"].get("url"), "api_key": case["options"].get("apiKey")}
    if "says" in case:
        with pytest.raises(errors.NotConfiguredError, match=case["says"]):
            Berth(**options, http_client=client)
        return
    Berth(**options, http_client=client).quota()
    assert f"{sent[0].headers['authorization']} to {sent[0].url}" == case["sent"]


def test_a_key_can_come_anew_for_each_call() -> None:
    keys = iter(["first", "second"])
    client = http().Client(transport=http().MockTransport(lambda request: http().Response(200, json=dict(request.headers))))
    berth = Berth("https://berth.example", lambda: next(keys), http_client=client)
    assert [berth.request("GET", "/x")["authorization"] for _ in range(2)] == ["Bearer first", "Bearer second"]


def test_a_key_is_not_sent_where_a_redirect_leads() -> None:
    berth, sent = through(answering(307, "", {"location": "https://elsewhere.example/"}), retries=0)
    with pytest.raises(ConnectionFailedError):
        berth.quota()
    assert [str(request.url) for request in sent] == ["https://berth.example/v1/quota"]


def test_an_id_of_a_stranger_names_no_other_path() -> None:
    berth, sent = through(answering(200, json.dumps(UNIT)))
    berth.units.get("../quota?x")
    assert sent[0].url.raw_path == b"/v1/units/..%2Fquota%3Fx"


@pytest.mark.anyio
async def test_the_library_with_async_sends_the_same() -> None:
    attempts = []

    def handle(request: Any) -> Any:
        attempts.append(request.headers["idempotency-key"])
        if len(attempts) == 1:
            raise http().ReadError("connection reset", request=request)
        return http().Response(200, json=ANSWER)

    client = http().AsyncClient(transport=http().MockTransport(handle))
    async with AsyncBerth("https://berth.example", "k", http_client=client) as berth:
        await berth.units.create("an/image", idempotency_key="my-own")
    assert attempts == ["my-own", "my-own"]
    assert not client.is_closed


def test_both_halves_have_the_same_methods() -> None:
    for name in ("client", "units", "unit", "files", "processes", "stacks", "recipes", "command", "lists"):
        halves = [importlib.import_module(f"berth.{half}.{name}") for half in ("_async", "_sync")]
        plain, waiting = (
            {
                kind.__name__.removeprefix("Async"): {
                    member.replace("__a", "__").replace("aclose", "close")
                    for member in vars(kind)
                    if member != "__await__"
                }
                for _, kind in inspect.getmembers(half, inspect.isclass)
                if kind.__module__ == half.__name__
            }
            for half in halves
        )
        assert plain == waiting
