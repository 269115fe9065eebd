# SPDX-License-Identifier: Apache-2.0
"""A running weftd on ibsim, and infiniband-diags on other adapters: every tool sees what weft's API tells."""
import random
import re

import pytest

import rig
from rig import Ibsim, Once, Weftd
from topology import BY_NAME

TOOLS = ("ibsim", "ibnetdiscover", "iblinkinfo", "ibhosts", "ibswitches", "ibroute", "ibtracert", "sminfo", "smpquery",
         "perfquery", "ibqueryerrors")
pytestmark = pytest.mark.skipif(rig.missing(*TOOLS) != "", reason=rig.missing(*TOOLS))
SM_HOST, HOST = "gpu-0001-mlx5_0", "gpu-0003-mlx5_5"
GBPS = {"2.5": "SDR", "5.0": "DDR", "10.0": "QDR", "14.0625": "FDR", "25.78125": "EDR", "53.125": "HDR"}


class Site:
    """The running parts, and what the API said when the fabric was up."""

    def __init__(self, ibsim, weftd):
        self.ibsim, self.weftd = ibsim, weftd
        self.fabric = weftd.wait_up()
        self.nodes = {n["guid"]: n for n in weftd.all("/fabrics/default/nodes")}
        self.ports = weftd.all("/fabrics/default/ports")
        self.links = weftd.all("/fabrics/default/links")
        self.end = {p["guid"]: p for p in self.ports if p["guid"]}
        self.random = random.Random(7)

    def run(self, *command, **more):
        return self.ibsim.run(HOST, *command, **more)

    def cas(self):
        return [n for n in self.nodes.values() if n["type"] == "ca"]

    def switches(self):
        return [n for n in self.nodes.values() if n["type"] == "switch"]


@pytest.fixture(scope="module", params=["rail-256", "rail-1024", "ft3-1024"])
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    with Ibsim(BY_NAME[request.param](), folder / "ibsim") as ibsim:
        # First a run that dumps the tables; the daemon then finds its own work.
        once = Once(folder, "--state", folder / "state", "--dump-lft", folder / "x.lft", ibsim=ibsim, host=SM_HOST)
        assert once.code == 0, once.stdout
        with Weftd(folder, ibsim=ibsim, host=SM_HOST) as weftd:
            s = Site(ibsim, weftd)
            s.folder = folder
            yield s


def guid(text):
    return f"0x{int(text, 16):016x}"


def fields(text):
    """name -> value of the dotted lines of smpquery and perfquery."""
    return {m[1].lower(): m[2].strip() for m in re.finditer(r"^(\w+):\.*(.*)$", text, re.M)}


def test_as_planned(site):
    """The API's lists are the fabric that ibsim was given."""
    net = site.ibsim.net
    assert {n["guid"]: (n["name"], n["num_ports"]) for n in site.nodes.values()} == {
        guid(f"{n.guid:x}"): (n.desc, n.ports) for n in net.node.values()}
    assert len(site.links) == net.num_links
    f = site.fabric
    assert (f["nodes"], f["switches"], f["cas"], f["links"]) == (
        len(net.node), len(net.switches), len(net.cas), net.num_links)
    assert f["routing"]["verified"] is True and f["routing"]["disconnected"] == 0
    assert f["other_sm"] is None and f["error"] is None


def test_no_table_is_written_again(site):
    assert site.weftd.mads().get(("LinearForwardingTable", "Set"), 0) == 0


def discovered(text):
    """(nodes {guid: (type, ports, name)}, links {((guid, port), (guid, port)): "4xHDR"}, lids {guid: lid}).

    Links in both directions; the LID of an adapter is that of its last port.
    """
    nodes, links, lids, here = {}, {}, {}, None
    for line in text.splitlines():
        if (m := re.match(r'(Switch|Ca)\t(\d+) "[SH]-([0-9a-f]{16})"\s+# "(.*?)"(.*)', line)):
            here = guid(m[3])
            nodes[here] = ("switch" if m[1] == "Switch" else "ca", int(m[2]), m[4])
            if (lid := re.search(r" lid (\d+)", m[5])):
                lids[here] = int(lid[1])
        elif (m := re.match(r'\[(\d+)\](?:\([0-9a-f]+\))?\s+"[SH]-([0-9a-f]{16})"\[(\d+)\](?:\([0-9a-f]+\))?\s+# '
                            r'(?:lid (\d+) lmc \d+ )?".*" lid (\d+) (\S+)$', line)):
            links[(here, int(m[1])), (guid(m[2]), int(m[3]))] = m[6]
            if m[4]:
                lids[here] = int(m[4])
    return nodes, links, lids


def test_ibnetdiscover(site):
    nodes, links, lids = discovered(site.run("ibnetdiscover"))
    assert nodes == {g: (n["type"], n["num_ports"], n["name"]) for g, n in site.nodes.items()}
    assert lids == {g: n["lid"] for g, n in site.nodes.items()}
    told = {}
    for link in site.links:
        a, z = (link["a"]["guid"], link["a"]["port"]), (link["z"]["guid"], link["z"]["port"])
        told[a, z] = told[z, a] = link["link"]
    assert links == told


def test_iblinkinfo(site):
    """Both ends of every link: GUIDs, LIDs, ports, width, speed, states."""
    seen = set()
    for m in re.finditer(r'^(0x[0-9a-f]{16}) " *(.*?)" +(\d+) +(\d+)\[.*?\] ==\( (\d+X) +([\d.]+) Gbps +(\w+)/ +(\w+)\)==> +'
                         r'(0x[0-9a-f]{16}) +(\d+) +(\d+)\[.*?\] "(.*?)" \(', site.run("iblinkinfo", "-l"), re.M):
        seen.add((m[1], m[2], int(m[3]), int(m[4]), m[5].lower() + GBPS[m[6]], m[7].lower(), m[8].lower(), int(m[10]),
                  int(m[11]), m[12]))
    told = set()
    lid = {g: n["lid"] for g, n in site.nodes.items()}
    for p in site.ports:
        if p["peer"]:
            own = p["guid"] or p["node_guid"]
            told.add((own, p["node_name"], lid[p["node_guid"]], p["num"], p["link"], p["state"],
                      p["phys_state"].replace("-", ""), lid[p["peer"]["guid"]], p["peer"]["port"], p["peer"]["name"]))
    assert seen == told


@pytest.mark.parametrize("command, kind", [("ibhosts", "ca"), ("ibswitches", "switch")])
def test_node_lists(site, command, kind):
    seen = {(m[1], int(m[2]), m[3]) for m in
            re.finditer(r'^\w+\t: (0x[0-9a-f]{16}) ports (\d+) "(.*?)"', site.run(command), re.M)}
    assert seen == {(n["guid"], n["num_ports"], n["name"]) for n in site.nodes.values() if n["type"] == kind}


def test_sminfo(site):
    m = re.match(r"sminfo: sm lid (\d+) sm guid (0x[0-9a-f]+), activity count (\d+) priority (\d+) state (\d+) (\w+)",
                 site.run("sminfo"))
    sm = site.fabric["sm"]
    assert (int(m[1]), guid(m[2]), int(m[4]), m[6]) == (sm["lid"], sm["port_guid"], sm["priority"], "SMINFO_MASTER")
    assert sm["state"] == "master" and sm["priority"] == 8
    own = site.ibsim.net.node[SM_HOST]
    assert sm["port_guid"] == guid(f"{own.guid + 1:x}")


def test_smpquery_portinfo(site):
    """Ports of an adapter and of a leaf, a host's and a trunk's, and a switch's own."""
    leaf = next(n for n in site.switches() if n["role"] == "leaf")
    ca = site.random.choice(site.cas())
    trunk = next(p["num"] for p in site.ports
                 if p["node_guid"] == leaf["guid"] and p["peer"] and site.nodes[p["peer"]["guid"]]["type"] == "switch")
    for node, num in [(ca, 1), (leaf, 1), (leaf, trunk), (leaf, 0)]:
        f = fields(site.run("smpquery", "portinfo", node["lid"], num))
        p = next(p for p in site.ports if p["node_guid"] == node["guid"] and p["num"] == num)
        assert f["linkstate"].lower() == p["state"] == "active", (node["name"], num)
        if num == 0 or node["type"] == "ca":
            assert int(f["lid"]) == p["lid"] == node["lid"]
            assert int(f["smlid"]) == site.fabric["sm"]["lid"]
            assert int(f["lmc"]) == p["lmc"] == 0
            assert f["gidprefix"] == "0xfe80000000000000"
        if num:
            assert f["linkwidthactive"].lower() == p["width"]
            assert GBPS[f["linkspeedextactive"].removesuffix(" Gbps")] == p["speed"]
            assert f["physlinkstate"].lower() == p["phys_state"].replace("-", "")
            assert int(f["neighbormtu"]) == p["mtu"]
            m = re.match(r"VL0(?:-(\d+))?$", f["opervls"])
            assert int(m[1] or 0) + 1 == p["vls"]


def test_smpquery_nodeinfo(site):
    for node in site.random.sample(site.cas(), 3) + site.random.sample(site.switches(), 3):
        f = fields(site.run("smpquery", "nodeinfo", node["lid"]))
        assert guid(f["guid"]) == node["guid"] and guid(f["systemguid"]) == node["sys_guid"]
        assert f["nodetype"] == {"ca": "Channel Adapter", "switch": "Switch"}[node["type"]]
        assert int(f["numports"]) == node["num_ports"]
        assert site.end[guid(f["portguid"])]["lid"] == node["lid"]
        assert (int(f["vendorid"], 16), int(f["devid"], 16)) == (node["vendor_id"], node["device_id"])


def test_smpquery_switchinfo(site):
    top = max(p["lid"] for p in site.ports if p["lid"])
    for node in site.random.sample(site.switches(), 4):
        f = fields(site.run("smpquery", "switchinfo", node["lid"]))
        assert (int(f["linearfdbtop"]), int(f["statechange"]), int(f["lifetime"])) == (top, 0, 18)


def test_smpquery_tables(site):
    """P_Keys, SL to VL and arbitration tables can be read by LID from far away; the default partition is there."""
    for node in site.random.sample(site.cas(), 2):
        assert re.search(r"^ *0: 0xffff ", site.run("smpquery", "pkeys", node["lid"], 1), re.M)
        assert "ports: in  0, out  0" in site.run("smpquery", "sl2vl", node["lid"])
        assert f"Lid {node['lid']} port 1" in site.run("smpquery", "vlarb", node["lid"], 1)


def test_ibroute(site):
    """What the switches hold is what --dump-lft said."""
    told, here = {}, None
    for line in (site.folder / "x.lft").read_text().splitlines():
        if (m := re.match(r"Unicast lids .* guid (0x[0-9a-f]{16}) ", line)):
            here = told.setdefault(m[1], {})
        elif (m := re.match(r"0x([0-9a-f]{4}) (\d{3}) # .* portguid (0x[0-9a-f]{16}): '(.*)'", line)):
            here[int(m[1], 16)] = (int(m[2]), m[3], m[4])
    assert set(told) == {n["guid"] for n in site.switches()}
    for node in site.random.sample(site.switches(), 6):
        text = site.run("ibroute", node["lid"])
        assert f"guid {node['guid']}" in text
        seen = {int(m[1], 16): (int(m[2]), m[3], m[4]) for m in
                re.finditer(r"^0x([0-9a-f]{4}) (\d{3}) : \(.* portguid (0x[0-9a-f]{16}): '(.*)'\)$", text, re.M)}
        assert seen == told[node["guid"]]


def test_ibtracert(site):
    """The hops of /routes are those that a packet takes, adapters and switches as ends."""
    ends = site.cas() + site.switches()
    for _ in range(10):
        a, z = site.random.sample(ends, 2)
        seen, leaves, first = [], None, None
        for line in site.run("ibtracert", a["lid"], z["lid"]).splitlines():
            if (m := re.match(r"From \w+ \{(0x[0-9a-f]{16})\} portnum (\d+)", line)):
                first = m[1]
            elif (m := re.match(r"\[(\d+)\] -> \w+ port \{(0x[0-9a-f]{16})\}\[(\d+)\] lid (\d+)", line)):
                seen.append((int(m[1]), m[2], int(m[3])))
        route = site.weftd.get("/fabrics/default/routes", from_=a["guid"], to=z["guid"])
        assert route["reached"] is True, route
        assert (first, route["lid"]) == (a["guid"], z["lid"])
        hops = route["hops"]
        assert hops[0]["guid"] == a["guid"] and hops[-1]["guid"] == z["guid"]
        told = [(hops[i]["out"], hops[i + 1]["guid"], hops[i + 1]["in"]) for i in range(len(hops) - 1)]
        # ibtracert names adapters by port GUID on the last hop
        seen = [(out, site.end[g]["node_guid"] if g in site.end else g, num) for out, g, num in seen]
        assert seen == told, (a["name"], z["name"])


def test_perfquery(site):
    """GMPs reach every agent by its LID: counters planted at the far end come back."""
    net = site.ibsim.net
    for node in site.random.sample(net.switches, 2):
        lid = site.nodes[guid(f"{node.guid:x}")]["lid"]
        value = site.random.randrange(1, 0xFFFF)
        site.ibsim.console(f'PerformanceSet "{node.name}"[2] PortCounters.SymbolErrorCounter={value}')
        site.ibsim.console(f'PerformanceSet "{node.name}"[2] PortCountersExtended.PortXmitData={value + 2**40}')
        assert int(fields(site.run("perfquery", lid, 2))["symbolerrorcounter"]) == value
        assert int(fields(site.run("perfquery", "-x", lid, 2))["portxmitdata"]) >= value + 2**40
        site.run("perfquery", "-R", lid, 2)
        assert int(fields(site.run("perfquery", lid, 2))["symbolerrorcounter"]) == 0


def test_ibqueryerrors(site):
    """A planted error is found at the port that weft calls the same, with the peer that weft knows."""
    net = site.ibsim.net
    leaf = next(n for n in net.switches if n.name.startswith("leaf"))
    site.ibsim.console(f'PerformanceSet "{leaf.name}"[1] PortCounters.SymbolErrorCounter=77')
    # --skip-sl: path records are a matter of the SA
    text = site.run("ibqueryerrors", "--skip-sl", "--report-port", ok=False)
    site.ibsim.console(f'PerformanceSet "{leaf.name}"[1] PortCounters.SymbolErrorCounter=0')
    m = re.search(r'GUID (0x[0-9a-f]+) port 1: *\[SymbolErrorCounter == 77\].*\n +Link info: +(\d+) +1\[.*?\] ==\( *(\w+) +'
                  r'([\d.]+) Gbps +Active/ +LinkUp\)==> +(0x[0-9a-f]{16}) +(\d+) +(\d+)\[', text)
    assert m, text[:2000]
    port = next(p for p in site.ports if p["node_guid"] == guid(m[1]) and p["num"] == 1)
    assert guid(m[1]) == guid(f"{leaf.guid:x}")
    assert int(m[2]) == site.nodes[guid(m[1])]["lid"] and m[3].lower() + GBPS[m[4]] == port["link"]
    assert site.end[m[5]]["node_guid"] == port["peer"]["guid"] and int(m[7]) == port["peer"]["port"]
    assert int(m[6]) == site.end[m[5]]["lid"]
    assert re.findall(r"GUID \S+ port (\d+): .*SymbolErrorCounter", text) == ["1"]
