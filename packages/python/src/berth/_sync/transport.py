# Written by `npm run gen` from berth/_async: do not edit.
"""One call to the service: its deadline, its retries and its errors."""

from __future__ import annotations

import json
from typing import IO, Any, Iterator, Mapping

from .._calls import Call, EventDecoder, StreamEvent, body_of, headers_of, url_of, wait_before
from .._settings import Settings
from .._waiting import chunks, sleep, http
from ..errors import BerthError, ConnectionFailedError, TimedOutError, error_of, error_of_envelope


class Transport:
    def __init__(self, settings: Settings, http_client: Any = None) -> None:
        self.settings = settings
        self._given = http_client
        self._client: Any = http_client

    def close(self) -> None:
        """A client that was given is its owner's to close."""
        if self._given is None and self._client is not None:
            self._client.close()
            self._client = None

    def json(self, call: Call) -> Any:
        response = self.open(call, "application/json")
        try:
            return json.loads(response.read())
        except ValueError as error:
            raise ConnectionFailedError(f"{self.settings.url} answered with no JSON.") from error
        except self._lost as error:
            raise self._failure(error) from error
        finally:
            response.close()

    def chunks(self, call: Call) -> Iterator[bytes]:
        """The body of an answer that is no JSON, as it comes."""
        response = self.open(call, "*/*")
        try:
            for chunk in response.iter_bytes():
                yield chunk
        except self._lost as error:
            raise self._failure(error) from error
        finally:
            response.close()

    def events(self, call: Call) -> Iterator[StreamEvent]:
        response = self.open(call, "text/event-stream")
        for event in self.events_of(response):
            yield event

    def events_of(self, response: Any) -> Iterator[StreamEvent]:
        """Raises what the last event says went wrong. A reader that stops early ends the call."""
        decoder = EventDecoder()
        try:
            for chunk in response.iter_bytes():
                for event in decoder.feed(chunk):
                    if event.event == "error":
                        facts = {"status": response.status_code}
                        raise error_of_envelope(event.data, facts) or ConnectionFailedError("The stream broke off.")
                    yield event
        except self._lost as error:
            # The service breaks silence every 15 s: a stream that is quiet for long is one whose other end is gone.
            raise ConnectionFailedError(f"{self.settings.url} was lost: {_why(error)}") from error
        finally:
            response.close()

    def fetch(self, call: Call, headers: Mapping[str, str]) -> Any:
        """Sends what is no call of the service, such as a request to a port of a unit, and returns what answers there. Once."""
        settings = self.settings
        timeout = settings.timeout if call.timeout is None else call.timeout
        sent = {name.lower(): value for name, value in headers.items()}
        own = headers_of(settings, call, "*/*")
        try:
            response = self._http().request(
                call.method,
                url_of(settings, call),
                headers={**own, **sent, "authorization": own["authorization"]},
                content=body_of(call),
                timeout=timeout,
                follow_redirects=True,
            )
        except http().TimeoutException as error:
            raise TimedOutError(f"No answer from {settings.url} in {timeout:g} s.") from error
        except self._lost as error:
            raise self._failure(error) from error
        if response.headers.get("x-berth-answer") == "unit":
            return response
        raise error_of(response.status_code, response.headers, response.text)

    def open(self, call: Call, accept: str) -> Any:
        """An answer whose body is still to be read, and to be closed."""
        start = 0 if call.content is None or isinstance(call.content, bytes) else call.content.tell()
        attempt = 0
        while True:
            try:
                return self._open_once(call, accept, start)
            except BerthError as error:
                wait = wait_before(self.settings, call, error, attempt)
                if wait is None:
                    raise
            sleep(wait)
            attempt += 1

    def _open_once(self, call: Call, accept: str, start: int) -> Any:
        client = self._http()
        settings = self.settings
        timeout = settings.timeout if call.timeout is None else call.timeout
        headers, content = _content(headers_of(settings, call, accept), body_of(call), start)
        try:
            request = client.build_request(
                call.method,
                url_of(settings, call),
                headers=headers,
                content=content,
                timeout=http().Timeout(timeout, read=timeout + call.extra),
            )
            response = client.send(request, stream=True, follow_redirects=False)
            if response.is_success:
                return response
            try:
                text = (response.read()).decode("utf-8", "replace")
            finally:
                response.close()
        except http().TimeoutException as error:
            raise TimedOutError(f"No answer from {settings.url} in {timeout + call.extra:g} s.") from error
        except self._lost as error:
            raise self._failure(error) from error
        raise error_of(response.status_code, response.headers, text)

    def _http(self) -> Any:
        if self._client is None:
            # Followed logs hold their connections: they are not to run out.
            limits = http().Limits(max_connections=None, max_keepalive_connections=20)
            self._client = http().Client(limits=limits)
        return self._client

    @property
    def _lost(self) -> tuple[type[Exception], ...]:
        return (http().HTTPError, http().InvalidURL, http().StreamError)

    def _failure(self, error: Exception) -> ConnectionFailedError:
        return ConnectionFailedError(f"{self.settings.url} cannot be reached: {_why(error)}")


def _why(error: Exception) -> str:
    return str(error) or type(error).__name__


def _content(headers: dict[str, str], body: bytes | IO[bytes] | None, start: int) -> tuple[Mapping[str, str], Any]:
    if body is None or isinstance(body, bytes):
        return headers, body
    end = body.seek(0, 2)
    body.seek(start)
    return {**headers, "content-length": str(end - start)}, chunks(body)
