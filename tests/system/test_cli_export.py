# SPDX-License-Identifier: Apache-2.0
"""weft export: what is written is read again by rules of its own."""
import re

import pytest
from weftlib import Daemon, js, need_programs, ok, wait_for, weft

pytestmark = need_programs()


def expand(hosts):
    """A hostlist as Slurm expands it."""
    out = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", hosts):
        head, _, ranges = part.partition("[")
        if not ranges:
            out.append(head)
            continue
        for r in ranges.rstrip("]").split(","):
            lo, _, hi = r.partition("-")
            out += [f"{head}{n:0{len(lo)}}" for n in range(int(lo), int(hi or lo) + 1)]
    return out


def tree(text):
    """Switch -> children, and hosts, of a topology.conf that has each of them once below another."""
    nodes, switches = {}, {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        m = re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line)
        assert m, line
        into = nodes if m[2] == "Nodes" else switches
        assert m[1] not in nodes and m[1] not in switches
        into[m[1]] = expand(m[3])
    hosts = [h for v in nodes.values() for h in v]
    below = [s for v in switches.values() for s in v]
    assert len(set(hosts)) == len(hosts) > 0 and len(set(below)) == len(below)
    assert set(below) <= set(nodes) | set(switches)
    roots = [s for s in [*nodes, *switches] if s not in below]
    return nodes, switches, roots


def test_slurm_by_units_and_rails():
    nodes, switches, roots = tree(ok(weft("export", "slurm", "superpod-2")))
    assert sorted(len(v) for v in nodes.values()) == [32, 32] and len(roots) == 1
    for rail in range(8):
        by_rail, _, roots = tree(ok(weft("export", "slurm", "superpod-2", "--rail", str(rail))))
        assert sorted(by_rail) == [f"leaf-su01-rail{rail}", f"leaf-su02-rail{rail}"] and len(roots) == 1
        assert sorted(h for v in by_rail.values() for h in v) == sorted(h for v in nodes.values() for h in v)
    yaml = ok(weft("export", "slurm-yaml", "superpod-2"))
    assert yaml.count("- topology: ") == 9 and yaml.count("cluster_default: true") == 1
    default = re.split(r"- topology: ", yaml)[1]
    listed = [h for line in re.findall(r'nodes: "([^"]*)"', default) for h in expand(line)]
    assert sorted(listed) == sorted(h for v in nodes.values() for h in v)


def test_slurm_of_three_tiers_and_of_parts(tmp_path):
    nodes, switches, roots = tree(ok(weft("export", "slurm", "ft3-8-4")))
    assert len(roots) == 1 and len(switches[roots[0]]) == 4 and len(nodes) == 8
    net = tmp_path / "parts.net"
    net.write_text("".join(f'Switch 8 "s{k}"\n[1] "h{k}a"[1]\n[2] "h{k}b"[1]\n\nHca 1 "h{k}a"\n[1] "s{k}"[1]\n\n'
                           f'Hca 1 "h{k}b"\n[1] "s{k}"[2]\n\n' for k in (1, 2)))
    nodes, switches, roots = tree(ok(weft("export", "slurm", str(net))))
    assert sorted(roots) == ["s1", "s2"] and not switches  # no job may span them


def test_a_file_stays_when_there_is_nothing_to_write(tmp_path):
    file = tmp_path / "topology.conf"
    ok(weft("export", "slurm", "rail-64", "--to", str(file)))
    had = file.read_text()
    r = weft("export", "slurm", "rail-64", "--match", "nobody*", "--to", str(file))
    assert r.rc == 2 and "no host is to be written" in r.err and "/api/" not in r.err
    assert file.read_text() == had and [p.name for p in tmp_path.iterdir()] == ["topology.conf"]
    r = weft("export", "slurm", "rail-64", "--to", str(tmp_path / "no" / "file"))
    assert r.rc == 2 and "cannot be written" in r.err


def test_graph():
    d = js(weft("export", "json", "rail-64"))
    ids = [n["id"] for n in d["nodes"]]
    assert len(set(ids)) == len(ids) and d["multigraph"] and not d["directed"]
    assert all(x["source"] in set(ids) and x["target"] in set(ids) for x in d["links"])
    assert sum(n["role"] == "host" for n in d["nodes"]) == 64


def test_of_a_running_fabric():
    with Daemon(simulate="rail-128") as daemon:
        d = daemon.up()
        def nodes():
            return js(d.weft("export", "json"))["nodes"]
        before, had = ok(d.weft("export", "slurm")), nodes()
        for k in range(8):
            ok(d.weft("sim", "link", "down", f"gpu-0003 mlx5_{k}[1]"))
        wait_for(lambda: len(nodes()) == len(had) - 8, "the host's end")
        assert ok(d.weft("export", "slurm")) == before  # a host that is down keeps its place
        dump = ok(d.weft("export", "lft"))
        assert dump.startswith("Unicast lids [0-") and dump.count("lids dumped") == sum(n["type"] == "switch" for n in had)
        assert "Hops : Optimal" in ok(d.weft("export", "fdbs"))
        assert "{ SW" in ok(d.weft("export", "lst")) and "Switch\t" in ok(d.weft("export", "ibnetdiscover"))


@pytest.mark.parametrize("args, said", [(("dot", "rail-64"), "no such form"), (("slurm", "rail-64", "--rail", "9"), "rail 9"),
                                        (("lft", "rail-64"), "no tables in force")])
def test_refusals(args, said):
    r = weft("export", *args)
    assert r.rc == 2 and said in r.err and r.out == ""
