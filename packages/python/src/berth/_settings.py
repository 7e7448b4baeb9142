"""Where the service is and what to say to be let in: what the caller gives, else the environment, else the file that a
Berth on this machine writes for its operator."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Callable, NamedTuple

from .errors import NotConfiguredError

version = "0.1.0"

ApiKey = str | Callable[[], str]


class Settings(NamedTuple):
    url: str
    api_key: Callable[[], str]
    timeout: float
    retries: int
    max_retry_after: float
    user_agent: str


def settings_of(
    url: str | None,
    api_key: ApiKey | None,
    *,
    timeout: float,
    retries: int,
    max_retry_after: float,
    user_agent: str | None,
) -> Settings:
    """Raises NotConfiguredError without a URL or a key."""
    place, key = _place_of(url or os.environ.get("BERTH_URL"), api_key or os.environ.get("BERTH_API_KEY"))
    if not re.match(r"https?://[^/]", place):
        raise NotConfiguredError(f'"{place}" is no URL of a service: it begins with http:// or https://.')
    if isinstance(key, str) and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise NotConfiguredError("The API key has characters that no key has: was it copied whole?")
    own = f"berth-sdk/{version} python/{sys.version_info[0]}.{sys.version_info[1]}"
    return Settings(
        url=place.rstrip("/"),
        api_key=key if callable(key) else _always(key),
        timeout=timeout,
        retries=retries,
        max_retry_after=max_retry_after,
        user_agent=own if user_agent is None else f"{user_agent} {own}",
    )


def _always(key: str) -> Callable[[], str]:
    return lambda: key


def _place_of(url: str | None, api_key: ApiKey | None) -> tuple[str, ApiKey]:
    if url and api_key:
        return url, api_key
    there = _operators_file()
    # The key of the file is for the service of the file: it is not sent anywhere else.
    if there and (not url or url.rstrip("/") == there[0]):
        return there[0], api_key or there[1]
    missing = "BERTH_API_KEY" if url else "BERTH_URL"
    raise NotConfiguredError(f"Set {missing}, or give Berth(url=..., api_key=...).")


def _operators_file() -> tuple[str, str] | None:
    """Of a Berth on this machine, for those who may read it; None elsewhere."""
    directory = os.environ.get("BERTH_DATA_DIR") or "/var/lib/berth"
    try:
        with open(os.path.join(directory, "credentials.json"), encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError):
        return None
    url, key = (told.get("baseUrl"), told.get("apiKey")) if isinstance(told, dict) else (None, None)
    return (url.rstrip("/"), key) if isinstance(url, str) and isinstance(key, str) else None
