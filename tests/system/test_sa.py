# SPDX-License-Identifier: Apache-2.0
"""What end nodes ask, by the real tools on ibsim: saquery from another adapter than the manager's.

ibsim carries no RMPP: of a table comes what its first MAD holds.
"""
import re
import subprocess

import pytest

from rig import Ibsim, Weftd, missing, tool, wait_until
from topology import BY_NAME

pytestmark = pytest.mark.skipif(bool(missing("ibsim", "saquery")), reason=missing("ibsim", "saquery"))


class Site:
    def __init__(self, ibsim, weftd, hosts):
        self.ibsim, self.weftd, self.hosts = ibsim, weftd, hosts
        self.lids = {name: lid for lid, (name, _) in ibsim.dump().end.items()}

    def query(self, *args, ok=True):
        return self.ibsim.run(self.hosts[3], "saquery", *args, ok=ok)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sa")
    net = BY_NAME["rail-256"]()
    hosts = [n.name for n in net.cas]
    ibsim = Ibsim(net, folder / "ibsim")
    try:
        with Weftd(folder, ibsim=ibsim, host=hosts[0]) as weftd:
            weftd.wait_up()
            yield Site(ibsim, weftd, hosts)
    finally:
        ibsim.close()


def dumps(text):
    """Records of saquery's output: [{field: value}]."""
    found = []
    for part in re.split(r"^\S.* dump:$", text, flags=re.M)[1:]:
        found.append({m[1].lower(): m[2] for m in re.finditer(r"^\s+([A-Za-z_]\w*?):?\.{2,}(.*)$", part, re.M)})
    return found


def test_class_port_info(site):
    text = site.query("-c")
    assert re.search(r"Class version\.+2$", text, re.M)
    assert int(re.search(r"Capability mask 2\.+(0x\w+)", text)[1], 16) & 1 << 12


@pytest.mark.parametrize("pair", [(0, 40), (7, 200), (100, 3), (5, 5)])
def test_path(site, pair):
    """By LIDs and by names; what the record says leads there by ibsim's own tables."""
    a, z = (site.hosts[i] for i in pair)
    lids = site.lids[a], site.lids[z]
    for args in [("--src-to-dst", f"{lids[0]}:{lids[1]}")]:
        path, = dumps(site.query("-p", *args))
        assert (int(path["slid"]), int(path["dlid"])) == lids
        assert path["pkey"] == "0xFFFF" and path["sl"] == "0x0" and path["num_path_revers"] == "0x80"
        assert path["mtu"] == "0x84" and path["rate"] == "0x91"
        assert path["pkt_life"] == ("0x80" if a == z else "0x92")
    dump = site.ibsim.dump()
    if a != z:
        leaf = dump.node[a]["port"][1][0]
        assert dump.walk(leaf, lids[1])[0] == (z, 1)


def test_no_path(site):
    assert dumps(site.query("-p", "--src-to-dst", "1:40000", ok=False)) == []


def test_groups(site):
    """The broadcast group is there before anybody has joined."""
    group, = dumps(site.query("-g"))
    assert group["mgid"] == "ff12:401b:ffff::ffff:ffff"
    assert (group["mlid"], group["mtu"], group["rate"], group["pkey"], group["sl"]) == ("0xC000", "0x84", "0x83", "0xFFFF", "0x0")
    assert "ff12:401b:ffff::ffff:ffff" in site.query("-m")


def test_node_record(site):
    for name in (site.hosts[0], site.hosts[77]):
        rec = dumps(site.query("NR", str(site.lids[name])))[0]
        assert int(rec["lid"]) == site.lids[name]
        assert rec["nodedescription"].replace(" ", "-") == name
    assert dumps(site.query("-N"))[0]["node_type"] == "Channel Adapter"


def test_port_info_record(site):
    rec = dumps(site.query("PIR", str(site.lids[site.hosts[9]])))[0]
    assert int(rec["endportlid"]) == site.lids[site.hosts[9]]


def test_managers(site):
    """By CapabilityMask match: one port is a manager's."""
    text = site.query("-s")
    assert re.findall(r"EndPortLid\.+([1-9]\d*)", text) == [str(site.lids[site.hosts[0]])]


def test_wrong_key_is_not_answered(site):
    text = site.query("--smkey", "77", "--timeout", "300", "PIR", "1", ok=False)
    assert "EndPortLid" not in text


def test_other_requests_do_no_harm(site):
    """What the manager does not serve is refused or dropped, and it goes on."""
    for args in (["SR"], ["GIR", "1"], ["PKTR", "1"], ["SL2VLTR", "1"], ["VLAR", "1"], ["IIR"], ["LR"], ["LFTR", "257"], ["MFTR"], ["SMIR"]):
        site.query("--timeout", "500", *args, ok=False)
    assert dumps(site.query("-p", "--src-to-dst", "1:20"))
    assert site.weftd.fabric()["state"] == "up"


def test_ibping_of_the_manager(site):
    """A MAD of a class that nobody serves."""
    site.ibsim.run(site.hosts[3], "ibping", "-c", "1", "-t", "300", str(site.lids[site.hosts[0]]), ok=False)
    assert dumps(site.query("-p", "--src-to-dst", "1:20"))


@pytest.mark.skipif(bool(missing("opensm")), reason=missing("opensm"))
def test_as_opensm_answers(site, tmp_path):
    """The same questions on the same fabric under OpenSM: all but what depends on who has which LID is the same."""
    net = BY_NAME["rail-256"]()
    with Ibsim(net, tmp_path / "ibsim") as ibsim:
        env = {**ibsim.env(site.hosts[0]), "OSM_TMP_DIR": str(tmp_path), "OSM_CACHE_DIR": str(tmp_path)}
        opensm = subprocess.Popen([tool("opensm"), "-f", str(tmp_path / "opensm.log"), "-g", hex(net.node[site.hosts[0]].guid + 1)], env=env, cwd=tmp_path,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: dumps(ibsim.run(site.hosts[3], "saquery", "-t", "300", "-g", ok=False)), "OpenSM answers")

            def both(*args):
                return dumps(ibsim.run(site.hosts[3], "saquery", *args)), dumps(site.query(*args))
            for args in (["-g"], ["-m"]):
                theirs, ours = both(*args)
                assert theirs == ours and len(ours) == 1
            for pair in ("1:20", "30:200"):
                theirs, ours = both("-p", "--src-to-dst", pair)
                for path in (theirs[0], ours[0]):
                    del path["sgid"], path["dgid"]
                assert theirs == ours
        finally:
            opensm.kill()
            opensm.wait()
