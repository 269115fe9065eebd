# SPDX-License-Identifier: Apache-2.0
"""Saved fabrics of real sites in weft's own simulator: `weftd --simulate FILE --once`."""
import re

import pytest

import judge
import rig
from rig import Once

FOLDER = rig.SHARED / "fabrics/ibnetdiscover"


def index():
    """(file, switches, adapters, links) of the rows of INDEX.md that say all three."""
    if not FOLDER.exists():
        return []
    rows = []
    for line in (rig.SHARED / "fabrics/INDEX.md").read_text().splitlines():
        m = re.match(r"\| ([\w.-]+\.txt)[^|]*\|[^|]*\| (\d+) / (\d+) / (\d+)", line)
        if m and (FOLDER / m[1]).exists():
            rows.append((m[1], int(m[2]), int(m[3]), int(m[4])))
    assert len(rows) >= 8
    return rows


ROWS = index()
pytestmark = pytest.mark.skipif(not ROWS, reason=f"{FOLDER} is not here")
SIMULATED = [r for r in ROWS if r[3] > 0]


@pytest.fixture(scope="module", params=SIMULATED, ids=[r[0] for r in SIMULATED])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    # The clock jumps: what a simulated device takes for an answer costs no time here.
    once = Once(folder, "--simulate", FOLDER / request.param[0], "--set", "sim.time=virtual", "--dump-lft",
                folder / "x.lft", "--dump-subnet", folder / "dump", deadline=4 * rig.DEADLINE)
    once.row, once.folder = request.param, folder
    return once


def test_comes_up(run):
    j, (name, switches, adapters, links) = run.json, run.row
    assert run.code == 0 and j["ok"] and j["verified"], (run.stdout[:1000], run.stderr[-1000:])
    # The index counts records; an adapter that is only named by its peer is made from there, and said to be.
    made = sum(f["count"] for f in j["findings"] if f["code"] == "node-without-record")
    assert (j["switches"], j["nodes"] - j["switches"] - made, j["links"]) == (switches, adapters, links)
    assert (j["proof"]["disconnected"], j["proof"]["unreached"], j["proof"]["counter_example"]) == (0, 0, "")


def test_lftcheck(run):
    program = judge.lftcheck_program(run.folder)
    if program is None:
        pytest.skip("lftcheck is not here")
    judge.lftcheck_sound(judge.lftcheck(program, run.folder / "dump/weft.topo", run.folder / "x.lft")["a"], run.row[1])


def test_adapter_alone(tmp_path):
    """A file with one adapter and no cable: said in words, not a fabric."""
    path = FOLDER / "ndr-single-ca-no-links.txt"
    if not path.exists():
        pytest.skip("the file is not here")
    once = Once(tmp_path, "--simulate", path)
    assert once.code == 1 and once.json["ok"] is False
    assert once.json["error"]["code"] == "port-down" and "cable" in once.json["error"]["text"]
