# SPDX-License-Identifier: Apache-2.0
"""Fabrics for ibsim, made here: nodes with names and descriptions, links, and the .net text that ibsim reads.

rail(adapters)        hosts of eight adapters; leaf i of a scalable unit holds adapter i of its 32 hosts; spines above
three_levels(radix)   pods of radix/2 leaves and radix/2 aggregation switches, cores above
"""
from dataclasses import dataclass, field


@dataclass
class Node:
    name: str  # ibsim's node id, unique
    ports: int
    switch: bool
    desc: str
    guid: int
    extra: str = ""  # lines before the node, such as `vendid=`
    peer: dict = field(default_factory=dict)  # port -> (name, port)


class Net:
    """A fabric to be simulated. GUIDs are given as ibsim counts them: an adapter's port has its node's plus the number."""

    def __init__(self, header="width=2\nspeed=7\nextspeed=7\n"):
        self.header = header
        self.node = {}
        self._next_ca, self._next_switch = 0x0002C90300100000, 0x0008F10500200000

    def ca(self, name, desc=None, ports=1, guid=None):
        if guid is None:
            guid = self._next_ca
            self._next_ca += ports + 1
        return self._add(Node(name, ports, False, desc or name, guid))

    def switch(self, name, ports, desc=None, guid=None):
        if guid is None:
            guid = self._next_switch
            self._next_switch += 1
        return self._add(Node(name, ports, True, desc or name, guid))

    def _add(self, node):
        assert node.name not in self.node
        self.node[node.name] = node
        return node

    def link(self, a, port_a, z, port_z):
        assert port_a not in self.node[a].peer and port_z not in self.node[z].peer
        self.node[a].peer[port_a] = (z, port_z)
        self.node[z].peer[port_z] = (a, port_a)

    def unlink(self, name, port):
        """Takes the cable out; returns its other end."""
        peer, peer_port = self.node[name].peer.pop(port)
        del self.node[peer].peer[peer_port]
        return peer, peer_port

    @property
    def cas(self):
        return [n for n in self.node.values() if not n.switch]

    @property
    def switches(self):
        return [n for n in self.node.values() if n.switch]

    @property
    def num_links(self):
        """Cables; one from a port to itself or to the same switch counts once."""
        ends = {(n.name, p): peer for n in self.node.values() for p, peer in n.peer.items()}
        return len({frozenset([a, z]) for a, z in ends.items()})

    def trunks(self):
        """Links between switches, once each: (name, port, name, port)."""
        for n in self.switches:
            for port, (peer, peer_port) in sorted(n.peer.items()):
                if self.node[peer].switch and (n.name, port) < (peer, peer_port):
                    yield n.name, port, peer, peer_port

    def text(self):
        out = [self.header]
        for n in self.node.values():
            kind = "Switch" if n.switch else "Ca"
            out.append(f"{kind.lower()}guid=0x{n.guid:016x}")
            out.append(f'{kind}\t{n.ports} "{n.name}"\t\t# "{n.desc}"' + (" enhanced port 0" if n.switch else ""))
            for port, (peer, peer_port) in sorted(n.peer.items()):
                out.append(f'[{port}]\t"{peer}"[{peer_port}]')
            out.append("")
        return "\n".join(out) + "\n"

    def write(self, path):
        path.write_text(self.text())
        return path


def _host_adapter(net, i):
    host, adapter = divmod(i, 8)
    name = f"gpu-{host + 1:04d}-mlx5_{adapter}"
    net.ca(name, f"gpu-{host + 1:04d} mlx5_{adapter}")
    return name


def rail(adapters):
    """Eight leaves of 64 ports for every 256 adapters, half as many spines as leaves, up to 1,024 adapters."""
    net = Net()
    units = adapters // 256
    assert adapters == units * 256 and units in (1, 2, 4)
    leaves, spines = units * 8, units * 4
    for s in range(units):
        for r in range(8):
            net.switch(f"leaf-su{s + 1:02d}-r{r}", 64, f"leaf-su{s + 1:02d}-rail{r}")
    for s in range(spines):
        net.switch(f"spine-{s + 1:02d}", 64)
    for i in range(adapters):
        host, r = divmod(i, 8)
        unit, slot = divmod(host, 32)
        net.link(_host_adapter(net, i), 1, f"leaf-su{unit + 1:02d}-r{r}", slot + 1)
    bundle = 32 // spines
    for leaf in range(leaves):
        for up in range(32):
            spine, lane = divmod(up, bundle)
            net.link(f"leaf-su{leaf // 8 + 1:02d}-r{leaf % 8}", 33 + up, f"spine-{spine + 1:02d}", leaf * bundle + lane + 1)
    return net


def three_levels(radix, pods):
    """Non-blocking: half of the radix down, half up. Core c hangs on one aggregation switch of every pod."""
    net = Net()
    half = radix // 2
    cores = pods * half * half // radix
    bundle = half // (cores // half)  # parallel links of an aggregation switch to one of its cores
    assert cores % half == 0 and half % (cores // half) == 0
    for p in range(pods):
        for i in range(half):
            net.switch(f"leaf-p{p + 1:02d}-{i + 1:02d}", radix)
            net.switch(f"agg-p{p + 1:02d}-{i + 1:02d}", radix)
    for c in range(cores):
        net.switch(f"core-{c + 1:02d}", radix)
    for p in range(pods):
        for i in range(half):
            for k in range(half):
                adapter = _host_adapter(net, (p * half + i) * half + k)
                net.link(adapter, 1, f"leaf-p{p + 1:02d}-{i + 1:02d}", k + 1)
                net.link(f"leaf-p{p + 1:02d}-{i + 1:02d}", half + k + 1, f"agg-p{p + 1:02d}-{k + 1:02d}", i + 1)
                core, lane = divmod(k, bundle)
                net.link(f"agg-p{p + 1:02d}-{i + 1:02d}", half + k + 1,
                         f"core-{i * (half // bundle) + core + 1:02d}", p * bundle + lane + 1)
    return net


def crossed():
    """Three pods of four leaves and four aggregation switches; each of the eight cores has links to two aggregation switches of every pod.

    So a packet for a leaf that lost a link can go around through the other one of its pod, and a table where one switch has already turned and the other has not is a loop."""
    net = Net()
    for p in range(3):
        for i in range(4):
            net.switch(f"leaf-p{p + 1}-{i + 1}", 16)
            net.switch(f"agg-p{p + 1}-{i + 1}", 16)
    for c in range(8):
        net.switch(f"core-{c + 1}", 16)
    for p in range(3):
        for i in range(4):
            for k in range(8):
                net.link(_host_adapter(net, (p * 4 + i) * 8 + k), 1, f"leaf-p{p + 1}-{i + 1}", k + 1)
            for k in range(4):
                net.link(f"leaf-p{p + 1}-{i + 1}", 9 + k, f"agg-p{p + 1}-{k + 1}", i + 1)
        for c in range(8):
            for k in range(2):
                net.link(f"agg-p{p + 1}-{(c + k) % 4 + 1}", 9 + c // 4 * 2 + k, f"core-{c + 1}", p * 2 + k + 1)
    return net


def small():
    """Two leaves with four adapters each under two spines: for what does not need size."""
    net = Net()
    for i in range(2):
        net.switch(f"leaf-{i + 1}", 8)
    for i in range(2):
        net.switch(f"spine-{i + 1}", 8)
    for i in range(8):
        net.link(_host_adapter(net, i), 1, f"leaf-{i // 4 + 1}", i % 4 + 1)
    for leaf in range(2):
        for up in range(4):
            net.link(f"leaf-{leaf + 1}", 5 + up, f"spine-{up // 2 + 1}", leaf * 2 + up % 2 + 1)
    return net


BY_NAME = {"rail-256": lambda: rail(256), "rail-1024": lambda: rail(1024), "ft3-1024": lambda: three_levels(32, 4), "crossed": crossed}
