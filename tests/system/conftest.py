# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the system tests."""
import pytest

import rig
from rig import Ibsim
from topology import BY_NAME


def pytest_report_header(config):
    return f"weftd: {rig.WEFTD}{' (sanitized)' if rig.SANITIZED else ''}"


@pytest.fixture(scope="session", autouse=True)
def weftd_is_there():
    assert rig.WEFTD.exists(), f"{rig.WEFTD} is missing: build it, or name it with WEFTD"


@pytest.fixture
def ibsim(tmp_path):
    """Starts ibsim on a Net, or on one of the named ones; ends it with the test."""
    running = []

    def start(net):
        net = BY_NAME[net]() if isinstance(net, str) else net
        running.append(Ibsim(net, tmp_path / f"ibsim{len(running)}"))
        return running[-1]
    yield start
    for i in running:
        i.close()
