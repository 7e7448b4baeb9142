"""A task whose model works in a unit of its own, one for each sample."""

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.tool import bash


@task
def primes():
    return Task(
        dataset=[Sample("How many primes are below a million? Write a program and run it.", target="78498")],
        solver=react(tools=[bash(timeout=120)]),
        scorer=includes(),
        sandbox="berth",
    )
