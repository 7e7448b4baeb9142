"""The standard tests of LangChain for sandboxes."""

import subprocess
from pathlib import Path

import pytest
from berth import Berth
from berth.adapters.langchain import BerthSandbox
from deepagents.backends.protocol import ExecuteResponse, FileUploadResponse
from deepagents.backends.sandbox import BaseSandbox
from langchain_tests.integration_tests import SandboxIntegrationTests


class TestStandard(SandboxIntegrationTests):
    """On a unit. Its user is not root: root may read every file."""

    @pytest.fixture(scope="class")
    def sandbox(self):
        # The tests make more calls a minute than a key may: they wait as often as they are told to.
        with Berth(max_retry_after=60, retries=10) as berth:
            with berth.units.create("berth.local/python:3.11", wait_timeout=600) as unit:
                # They call `python`, which Debian names python3.
                unit.exec(["ln", "-sf", "/usr/bin/python3", "/usr/local/bin/python"], check=True)
                yield BerthSandbox(unit, user="nobody")


class LocalSandbox(BaseSandbox):
    """No service at all: what goes wrong here, deepagents does itself."""

    id = "local"

    def execute(self, command, *, timeout=None):
        ran = subprocess.run(command, shell=True, capture_output=True, text=True)
        return ExecuteResponse(ran.stdout + ran.stderr, ran.returncode)

    def upload_files(self, files):
        for path, content in files:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        return [FileUploadResponse(path) for path, _ in files]

    def download_files(self, paths):
        raise NotImplementedError


class TestWithoutBerth(SandboxIntegrationTests):
    """The stale ones alone (conftest.py), which must fail here, too."""

    @pytest.fixture(scope="class")
    def sandbox(self, tmp_path_factory):
        type(self).root = str(tmp_path_factory.mktemp("sandbox"))
        return LocalSandbox()

    @property
    def sandbox_root_dir(self):
        return self.root
