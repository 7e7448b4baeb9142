"""The standard tests of LangChain for sandboxes, on one unit. Its user is not root: root may read every file."""

import pytest
from berth import Berth
from berth.adapters.langchain import BerthSandbox
from langchain_tests.integration_tests import SandboxIntegrationTests


class TestStandard(SandboxIntegrationTests):
    @pytest.fixture(scope="class")
    def sandbox(self):
        # The tests make more calls a minute than a key may: they wait as often as they are told to.
        with Berth(max_retry_after=60, retries=10) as berth:
            with berth.units.create("berth.local/python:3.11", wait_timeout=600) as unit:
                # They call `python`, which Debian names python3.
                unit.exec(["ln", "-sf", "/usr/bin/python3", "/usr/local/bin/python"], check=True)
                yield BerthSandbox(unit, user="nobody")
