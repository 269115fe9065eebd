# SPDX-License-Identifier: Apache-2.0
"""Judges of a fabric that was brought up, none of which shares code with weft: ibsim's own dump, walked here, ibdmchk
and lftcheck."""
import json
import re
import subprocess

import rig


def judge_dump(dump, net, sm_host, dead=()):
    """Every cable Active, every end port with a LID of its own and the manager's, every (leaf, LID) pair arrives.

    dead: names of nodes that never answered; they and what only they reach are left out. Returns pairs walked.
    """
    assert not dump.doubled, f"LIDs given twice: {dump.doubled[:3]}"
    sm_lid = dump.lid[sm_host, 1]
    for name, node in net.node.items():
        if name in dead:
            continue
        for port, (peer, peer_port) in node.peer.items():
            if peer in dead:
                continue
            seen = dump.node[name]["port"][port]
            assert seen == (peer, peer_port, "Active"), f"{name}[{port}]: {seen}"
        for port in [0] if node.switch else node.peer:
            assert dump.lid[name, port] > 0, f"{name}[{port}] has no LID"
            assert dump.smlid[name, port] == sm_lid, f"{name}[{port}] has master {dump.smlid[name, port]}, not {sm_lid}"
    leaves = [n.name for n in net.switches if n.name not in dead and any(not net.node[p].switch for p, _ in n.peer.values())]
    walked = 0
    for leaf in leaves:
        for lid, end in dump.end.items():
            if end[0] in dead:
                continue
            at, passed = dump.walk(leaf, lid)
            assert at == end, f"LID {lid} of {end} from {leaf}: ends at {at} after {passed}"
            walked += 1
    return walked


def write_dump(folder, dump, net):
    """ibsim's dump as ibsim.lst and ibsim.fdbs, in OpenSM's forms: what the devices hold, for ibdmchk. Returns the number of adapters."""
    def end(name, port):
        node = dump.node[name]
        kind, ports = ("SW", node["num_ports"]) if node["switch"] else ("CA", node["num_ports"])
        guid = node["guid"] + (0 if node["switch"] else port)
        lid = dump.lid[name, 0 if node["switch"] else port]
        return (f"{{ {kind} Ports:{ports:02x} SystemGUID:{node['guid']:016x} NodeGUID:{node['guid']:016x} PortGUID:{guid:016x} VenID:000002C9 "
                f"DevID:101B Rev:00000000 {{{net.node[name].desc}}} LID:{lid:04X} PN:{port:02X} }}")
    linked = set()
    with open(folder / "ibsim.lst", "w") as f:
        for name, node in dump.node.items():
            for port, (peer, peer_port, state) in node["port"].items():
                if peer is not None and state == "Active":
                    f.write(f"{end(name, port)} {end(peer, peer_port)} PHY=4x LOG=ACT SPD=50\n")
                    linked |= {name, peer}
    with open(folder / "ibsim.fdbs", "w") as f:
        for name, node in dump.node.items():
            if node["switch"] and name in linked:
                f.write(f"dump_ucast_routes: Switch 0x{node['guid']:016x}\nLID    : Port : Hops : Optimal\n")
                f.writelines(f"0x{lid:04X} : {port:03d}  : 00   : yes\n" for lid, port in sorted(node["lft"].items()))
                f.write("\n")
    return sum(not dump.node[n]["switch"] for n in linked)


def ibdmchk(folder, num_cas, stem="weft"):
    """weft's .lst and .fdbs, or those of write_dump (stem "ibsim"), through ibdmchk. Returns its text."""
    empty = folder / "empty.mcfdbs"
    empty.write_text("")
    # Its exit status tells nothing: it always crashes when it is done.
    r = subprocess.run([rig.tool("ibdmchk"), "-s", folder / f"{stem}.lst", "-f", folder / f"{stem}.fdbs", "-m", empty], cwd=folder,
                       capture_output=True, text=True, timeout=rig.DEADLINE, stdin=subprocess.DEVNULL)
    assert f"Scanned:{num_cas * (num_cas - 1)} CA to CA paths" in r.stdout, r.stdout[-2000:]
    assert "no credit loops found" in r.stdout, r.stdout[-2000:]
    assert not re.search(r"^-E-", r.stdout, re.M), re.findall(r"^-E-.*", r.stdout, re.M)[:5]
    return r.stdout


_built = {}


def lftcheck_program(folder):
    """lftcheck, compiled once; None when its source is not there."""
    source = rig.SHARED / "tools/lftcheck/lftcheck.c"
    if not source.exists():
        return None
    if "path" not in _built:
        path = folder / "lftcheck"
        subprocess.run(["gcc", "-O1", "-o", path, source, "-lpthread", "-lm"], check=True, timeout=rig.DEADLINE)
        _built["path"] = path
    return _built["path"]


def lftcheck(program, topology, tables, *options):
    """Flat keys of lftcheck's report; fails when a leaf does not reach a LID it is wired to."""
    r = subprocess.run([program, *options, "--json", topology, tables], capture_output=True, text=True, timeout=rig.DEADLINE)
    assert r.returncode == 0, f"{r.returncode}: {r.stdout[-2000:]} {r.stderr[-500:]}"
    return json.loads(r.stdout)


def lftcheck_sound(a, switches):
    """The report is about the fabric as it is, and it is forwarded in full without a cycle."""
    assert a["table.switches_matched"] == switches
    for key in ("table.switches_unknown", "table.guids_unmatched", "table.name_mismatch", "table.lid_conflicts",
                "table.linked_ports_without_lid", "reach.unreachable", "reach.any_switch_lid_pairs_bad",
                "reach.ca_to_ca_paths_bad", "cdg.hosts.channels_in_cycles", "cdg.all.channels_in_cycles"):
        assert a[key] == 0, (key, a[key])
