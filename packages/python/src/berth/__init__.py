"""Berth from Python: container units for AI agents. README.md has the first steps."""

from . import errors as errors
from ._async.client import AsyncBerth
from ._async.code import AsyncCode
from ._async.command import AsyncCommand
from ._async.lists import AsyncPages
from ._async.processes import AsyncProcess
from ._async.recipes import AsyncRecipeRun
from ._async.stacks import AsyncStack
from ._async.terminal import AsyncTerminal
from ._async.unit import AsyncForked, AsyncUnit
from ._code import CodeImage, CodeOutcome
from ._pieces import Change, Exit, Output, OutputPiece, Page, TeamEvent
from ._settings import version as __version__
from ._sync.client import Berth
from ._sync.code import Code
from ._sync.command import Command
from ._sync.lists import Pages
from ._sync.processes import Process
from ._sync.recipes import RecipeRun
from ._sync.stacks import Stack
from ._sync.terminal import Terminal
from ._sync.unit import Forked, Unit
from .errors import (
    BerthError,
    CommandFailedError,
    ConnectionFailedError,
    ExecResult,
    NotConfiguredError,
    NotFoundError,
    NotReadyError,
    TimedOutError,
)

__all__ = [
    "AsyncBerth",
    "AsyncCode",
    "AsyncCommand",
    "AsyncForked",
    "AsyncPages",
    "AsyncProcess",
    "AsyncRecipeRun",
    "AsyncStack",
    "AsyncTerminal",
    "AsyncUnit",
    "Berth",
    "BerthError",
    "Change",
    "Code",
    "CodeImage",
    "CodeOutcome",
    "Command",
    "CommandFailedError",
    "ConnectionFailedError",
    "ExecResult",
    "Exit",
    "Forked",
    "NotConfiguredError",
    "NotFoundError",
    "NotReadyError",
    "Output",
    "OutputPiece",
    "Page",
    "Pages",
    "Process",
    "RecipeRun",
    "Stack",
    "TeamEvent",
    "Terminal",
    "TimedOutError",
    "Unit",
    "__version__",
    "errors",
]
