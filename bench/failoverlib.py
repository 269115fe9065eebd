# SPDX-License-Identifier: Apache-2.0
"""What the failover benches share: a manager that keeps running, what it sends and when (umad_times.c), and ibsim's own account of the fabric.

Both managers are measured in the same way, from outside. `Manager` starts one and records its MADs; `event()` does something to the fabric on ibsim's console and
waits until the manager is done; `Reaction` is what the records tell: the time from the first trap to the last Set(LinearForwardingTable), MADs by attribute up to the
last one that belongs to the event. Light sweeps (one Get(SwitchInfo) a switch) come every SWEEP seconds with both; each event happens right after one, and one that
follows what the event caused is not counted.
"""
import calendar
import collections
import http.client
import json
import mmap
import os
import random
import re
import signal
import socket
import struct
import subprocess
import time

from benchlib import ROOT, WEFTD, Ibsim, note

SWEEP = 5
QUIET = 1.0
ATTR = {0x02: "Notice", 0x10: "NodeDescription", 0x11: "NodeInfo", 0x12: "SwitchInfo", 0x14: "GUIDInfo", 0x15: "PortInfo", 0x16: "P_KeyTable", 0x17: "SLtoVLMappingTable",
        0x18: "VLArbitrationTable", 0x19: "LinearForwardingTable", 0x1B: "MulticastForwardingTable", 0x20: "SMInfo"}
METHOD = {1: "Get", 2: "Set", 3: "Send", 5: "Trap", 6: "Report", 7: "TrapRepress", 0x12: "GetTable", 0x15: "Delete", 0x81: "GetResp", 0x86: "ReportResp"}
GET, SET, TRAP, NOTICE, SWITCHINFO, PORTINFO, LFT = 1, 2, 5, 0x02, 0x12, 0x15, 0x19
ACTIVE = 4


def wait(condition, what, deadline, poll=0.01):
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise RuntimeError("not within %g s: %s" % (deadline, what() if callable(what) else what))
        time.sleep(poll)


# --- what was sent and when ---

Mad = collections.namedtuple("Mad", "seq ns tid modifier attr extra received cls method status unused")
MAD = struct.Struct("=QQQIHHBBBBI")
HEAD = 64


def times_shim(work):
    so = os.path.join(work, "umad_times.so")
    if not os.path.exists(so):
        subprocess.check_call(["gcc", "-O2", "-shared", "-fPIC", "-o", so, os.path.join(ROOT, "bench", "umad_times.c"), "-ldl"])
    return so


class Records:
    """The ring that umad_times.c writes."""

    def __init__(self, path, room=1 << 22):
        self.path, self.room, self.map = path, room, None

    def env(self):
        return dict(UMAD_TIMES_FILE=self.path, UMAD_TIMES_MAX=str(self.room))

    def count(self):
        if self.map is None:
            if not os.path.exists(self.path) or os.path.getsize(self.path) < HEAD + self.room * MAD.size:
                return 0
            with open(self.path, "rb") as f:
                self.map = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        return struct.unpack_from("=Q", self.map)[0]

    def __getitem__(self, i):
        """Record i; None while it is being written."""
        m = Mad._make(MAD.unpack_from(self.map, HEAD + i % self.room * MAD.size))
        return m if m.seq == i + 1 else None

    def since(self, begin, end=None):
        end = self.count() if end is None else end
        if end - begin > self.room:
            raise RuntimeError("more MADs than the record holds: %d" % (end - begin))
        return [wait(lambda: self[i], "record %d" % i, 5) for i in range(begin, end)]

    def quiet(self, seconds):
        """Something was sent, but nothing for so long."""
        now = time.monotonic_ns()
        for i in range(self.count() - 1, -1, -1):
            m = self[i]
            if m is None:
                return False
            if now - m.ns > seconds * 1e9:
                return True
            if not m.received:
                return False
        return False


def name_of(m):
    return "%s.%s" % (ATTR.get(m.attr, "0x%02x" % m.attr), METHOD.get(m.method, "0x%02x" % m.method))


class Reaction:
    """What one event caused, from the MADs of a manager. Times in seconds from the first trap of 128 (None without one); `cable` is when the console was told."""

    def __init__(self, mads, told_ns, switches):
        self.traps = [m for m in mads if m.received and m.method == TRAP and m.attr == NOTICE and m.extra in (128, 144)]
        begin = self.traps[0].ns if self.traps else told_ns
        sent = [m for m in mads if not m.received and m.ns >= begin]
        light = 0  # those at the end
        while light < len(sent) and (sent[-1 - light].attr, sent[-1 - light].method) == (SWITCHINFO, GET):
            light += 1
        if light >= switches:
            del sent[len(sent) - light // switches * switches:]
        self.mads = len(sent)
        self.by_attr = collections.Counter(name_of(m) for m in sent)
        lft = [m.ns for m in sent if m.attr == LFT and m.method == SET]
        active = [m.ns for m in sent if m.attr == PORTINFO and m.method == SET and m.extra == ACTIVE]
        self.lft_sets = len(lft)
        self.last_lft = (max(lft) - begin) / 1e9 if lft else 0.0
        self.last_active = (max(active) - begin) / 1e9 if active else None
        self.trap_after = (begin - told_ns) / 1e9
        self.all = (sent[-1].ns - begin) / 1e9 if sent else 0.0

    def text(self):
        attrs = ", ".join("%s %d" % kv for kv in self.by_attr.most_common())
        return "trap %.1f ms after the console, %d traps; last LFT Set %.1f ms, last MAD %.1f ms after the trap; %d MADs: %s" % (
            self.trap_after * 1e3, len(self.traps), self.last_lft * 1e3, self.all * 1e3, self.mads, attrs)


# --- ibsim, its console and its dump ---


class Fabric:
    """A .net text: names, links, tiers by what hangs on what."""

    def __init__(self, text):
        self.ports, self.link, self.desc = {}, {}, {}
        for line in text.splitlines():
            if (m := re.match(r'(Ca|Hca|Switch)\s+(\d+)\s+"([^"]+)"\s*(?:#\s*"([^"]*)")?', line)):
                here = m[3]
                self.ports[here] = int(m[2])
                self.desc[here] = m[4] or here
                self.link[here] = {}
                if m[1] == "Switch":
                    self.link[here][0] = None
            elif (m := re.match(r'\[(\d+)\]\s*"([^"]+)"\[(\d+)\]', line)):
                self.link[here][int(m[1])] = (m[2], int(m[3]))
        self.switches = [n for n, p in self.link.items() if 0 in p]
        self.cas = [n for n, p in self.link.items() if 0 not in p]
        for n in self.switches:
            del self.link[n][0]
        is_switch = set(self.switches)
        self.leaves = [s for s in self.switches if any(p not in is_switch for p, _ in self.link[s].values())]
        leaf = set(self.leaves)
        self.above = [s for s in self.switches if s not in leaf and any(p in leaf for p, _ in self.link[s].values())]
        above = set(self.above)
        self.tops = [s for s in self.switches if s not in leaf and s not in above]
        self.links = sum(len(p) for p in self.link.values()) // 2

    def trunk(self, lower, upper, skip=0):
        """A link from the middle one of `lower` to one of `upper`."""
        upper = set(upper)
        s = lower[len(lower) // 2 + skip]
        ports = [p for p, (peer, _) in sorted(self.link[s].items()) if peer in upper]
        return s, ports[len(ports) // 2]

    def host(self):
        """An adapter in the middle, and its leaf."""
        ca = self.cas[len(self.cas) // 2]
        return ca, self.link[ca][1][0]


class Sim(Ibsim):
    """benchlib's, with its console."""

    def console(self, lines):
        self.proc.stdin.write(("\n".join(lines) + "\n").encode())
        self.proc.stdin.flush()

    def dump(self, fabric):
        begin = os.path.getsize(self.out)
        self.console(["Dump"])

        def done():
            with open(self.out, "rb") as f:
                f.seek(max(begin, os.path.getsize(self.out) - 200))
                return b"dumped" in f.read()
        wait(done, "ibsim's dump", 120)
        with open(self.out, "rb") as f:
            f.seek(begin)
            return Dump(f.read().decode(errors="replace"), fabric)


HEX = {"%X" % i: i for i in range(256)}


class Dump:
    """lft[switch] = bytes by LID; lid[adapter]; state[node, port] of connected ports; peer[node][port] of links that are there."""
    NODE = re.compile(r'(?:sim> )*(Switch|Ca) \d+ "([^"]+)"')
    PORT = re.compile(r'[0-9a-f]+\t\[(\d+)\](?:\t"([^"]*)"\[(\d+)\])?\s*(?:lid (\d+) lmc)?.*?\b([A-Z][A-Za-z]+)/[A-Z][A-Za-z]+\b')

    def __init__(self, text, fabric):
        self.fabric = fabric
        self.lft, self.lid, self.state, self.peer = {}, {}, {}, collections.defaultdict(dict)
        here = None
        for line in text.splitlines():
            if line.startswith("#\tForwarding table"):
                table = self.lft.setdefault(here, bytearray(b"\xff" * 49152))
                for entry in line.rpartition(":")[2].split():
                    lid, _, port = entry[1:].partition("]")
                    table[int(lid)] = HEX[port]
            elif (m := self.NODE.match(line)):
                here, switch = m[2], m[1] == "Switch"
            elif here and (m := self.PORT.match(line)):
                port = int(m[1])
                if m[4] and (port == 0 or not switch):
                    self.lid[here] = int(m[4])
                if m[2] and m[2] != "Sma Port":
                    self.peer[here][port] = (m[2], int(m[3]))
                    self.state[here, port] = m[5]

    def all_active(self):
        return all(s == "Active" for s in self.state.values())

    def paths(self, destinations):
        """{(leaf, adapter): ports passed}; an entry of None at the end where it does not arrive."""
        found = {}
        is_switch = set(self.fabric.switches)
        for d in destinations:
            lid = self.lid[d]
            for leaf in self.fabric.leaves:
                at, hops = leaf, []
                while len(hops) < 16:
                    port = self.lft[at][lid] if at in self.lft else 255
                    hops.append((at, port))
                    next_ = self.peer[at].get(port)
                    if next_ is None or self.state[at, port] != "Active" or (next_[0] not in is_switch and next_[0] != d):
                        hops.append(None)
                        break
                    at = next_[0]
                    if at == d:
                        break
                else:
                    hops.append(None)
                found[leaf, d] = tuple(hops)
        return found


class Difference:
    """Two dumps: entries, blocks and switches that differ; paths that moved though they did not cross what failed (`dead`: (node, port) ends), paths that do not arrive."""

    def __init__(self, before, after, dead, sample=256):
        self.entries = self.blocks = self.switches = 0
        for s, old in before.lft.items():
            new = after.lft[s]
            if old == new:
                continue
            self.switches += 1
            for b in range(0, len(old), 64):
                if old[b:b + 64] != new[b:b + 64]:
                    self.blocks += 1
                    self.entries += sum(x != y for x, y in zip(old[b:b + 64], new[b:b + 64]))
        self.lids_moved = sum(after.lid.get(n) != lid for n, lid in before.lid.items())
        cas = before.fabric.cas
        lost = {n for n, _ in dead}
        choose, cas = random.Random(1), [c for c in cas if c not in lost]
        # half of them from those that something behind a dead port was for
        concerned = [c for c in cas if any(n in before.lft and before.lft[n][before.lid[c]] == p for n, p in dead)]
        chosen = sorted({*choose.sample(concerned, min(sample // 2, len(concerned))), *choose.sample(cas, min(sample // 2, len(cas)))})
        was, now = before.paths(chosen), after.paths(chosen)
        self.pairs = len(was)
        crossing = {k for k, hops in was.items() if any(h in dead for h in hops if h)}
        self.crossing = len(crossing)
        self.moved = sum(was[k] != now[k] for k in was)
        self.moved_without_need = sum(was[k] != now[k] and k not in crossing for k in was)  # on the way back: those that return
        self.broken = sum(hops[-1] is None for hops in now.values())

    def text(self):
        return "%d entries in %d blocks of %d switches differ; of %d paths %d crossed it, %d moved, %d without need, %d do not arrive; %d LIDs moved" % (
            self.entries, self.blocks, self.switches, self.pairs, self.crossing, self.moved, self.moved_without_need, self.broken, self.lids_moved)


# --- managers that keep running ---


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.unix = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.unix)


class Api:
    def __init__(self, path):
        self.path, self.open = path, None

    def ask(self, method, path, body=None):
        if self.open is None:
            self.open = UnixConnection(self.path)
        try:
            self.open.request(method, "/api/v1" + path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"} if body is not None else {})
            answer = self.open.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.open = None
            raise
        if answer.status >= 300:
            raise RuntimeError("%s %s: %d %s" % (method, path, answer.status, data[:300]))
        return json.loads(data)

    def fabric(self):
        return self.ask("GET", "/fabrics/default")

    def vl15_dropped(self):
        return self.ask("GET", "/fabrics/default/sim").get("dropped_vl15")

    def sweeps(self):
        return self.ask("GET", "/fabrics/default/sweeps?limit=64")["items"]

    def mads(self):
        """Sums over all requests: {"timeouts": n, ...}"""
        items = self.ask("GET", "/fabrics/default/mads?limit=1000")["items"]
        return {k: sum(i[k] for i in items) for k in ("sent", "retries", "timeouts", "refused", "undeliverable", "late")}


class Process:
    """A manager's process; ended with the block."""

    def __enter__(self):
        return self

    def __exit__(self, *a):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()

    def cpu(self):
        with open("/proc/%d/stat" % self.proc.pid) as f:
            s = f.read().rsplit(")", 1)[1].split()
        return (int(s[11]) + int(s[12])) / os.sysconf("SC_CLK_TCK")

    def alive(self):
        if self.proc.poll() is not None:
            raise RuntimeError("%s ended with %d: %s" % (self.name, self.proc.returncode, self.tail()))
        return True

    def tail(self):
        with open(self.log, errors="replace") as f:
            return f.read()[-800:]


class Weft(Process):
    """weftd on an ibsim, or with args only: on its own simulator."""
    name = "weft"

    def __init__(self, work, sim=None, args=(), shim=None):
        d = os.path.join(work, "weft")
        os.makedirs(d)
        self.log = os.path.join(d, "log")
        self.records = Records(os.path.join(d, "mads"))
        self.api = Api(os.path.join(d, "weft.sock"))
        env = dict(sim.env([shim]), **self.records.env()) if sim else dict(os.environ)
        command = [WEFTD, "--state", os.path.join(d, "state"), "--socket", self.api.path, "--http", "127.0.0.1:0", *args]
        os.makedirs(os.path.join(d, "state"))
        with open(self.log, "w") as log:
            self.proc = subprocess.Popen(command, env=env, cwd=d, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def fabric(self):
        self.alive()
        try:
            return self.api.fabric()
        except (OSError, http.client.HTTPException):
            return None

    def up(self, links):
        f = self.fabric()
        return f is not None and f["state"] == "up" and f["links"] == links

    def wait_up(self, links, deadline=120):
        wait(lambda: self.up(links), lambda: "weft up with %d links: %s" % (links, self.tail()), deadline)

    def mark(self):
        newest = self.api.sweeps()
        return newest[0]["id"] if newest else 0

    def done(self, mark, links):
        """A sweep that began after the mark has ended, and the fabric is as it should be."""
        return self.up(links) and self.mark() > mark

    def sweeps_since(self, mark):
        return [s for s in self.api.sweeps() if s["id"] > mark][::-1]


class Opensm(Process):
    name = "opensm"

    def __init__(self, work, sim, shim):
        d = os.path.join(work, "opensm")
        os.makedirs(d)
        self.log = os.path.join(d, "log")
        self.records = Records(os.path.join(d, "mads"))
        conf = os.path.join(d, "conf")
        with open(conf, "w") as f:
            f.write("force_log_flush TRUE\n")
        env = dict(sim.env([shim]), OSM_CACHE_DIR=d, OSM_TMP_DIR=d, **self.records.env())
        with open(os.path.join(d, "out"), "w") as out:
            self.proc = subprocess.Popen(["opensm", "-F", conf, "-f", self.log, "--dump_files_dir", d, "-R", "minhop", "-s", str(SWEEP)], env=env, cwd=d,
                                         stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def mark(self):
        self.alive()
        if not os.path.exists(self.log):
            return 0
        with open(self.log, errors="replace") as f:
            return f.read().count("SUBNET UP")

    def wait_up(self, links, deadline=300):
        wait(lambda: self.mark() > 0, "opensm's SUBNET UP", deadline)

    def done(self, mark, links):
        return self.mark() > mark

    def sweeps_since(self, mark):
        return []


def settle(manager, switches, deadline=120):
    """Until a light sweep has just been made and nothing else is sent."""
    records = manager.records

    def seen():
        return collections.Counter(name_of(m) for m in records.since(begin) if not m.received)

    def swept():
        return manager.alive() and records.count() - begin >= switches and records.quiet(0.3) and seen()["SwitchInfo.Get"] >= switches
    wait(lambda: manager.alive() and records.quiet(0.3), "%s is quiet" % manager.name, deadline, poll=0.05)
    begin = records.count()
    wait(swept, lambda: "%s makes a light sweep and is quiet; it sent %s: %s" % (manager.name, dict(seen()), manager.tail()), deadline, poll=0.05)


def event(manager, sim, fabric, lines, links, deadline=180):
    """Tells ibsim's console, waits until the manager is done, gives (Reaction, weft's own account of its sweeps)."""
    settle(manager, len(fabric.switches))
    mark, begin = manager.mark(), manager.records.count()
    told, cpu = time.monotonic_ns(), manager.cpu()
    sim.console(lines)
    # weft is not asked anything while it works
    wait(lambda: manager.alive() and manager.records.count() > begin and manager.records.quiet(QUIET / 2), "%s does something and is quiet" % manager.name, deadline, poll=0.05)
    wait(lambda: manager.done(mark, links), lambda: "%s has taken in %s: %s" % (manager.name, lines[0], manager.tail()), deadline, poll=0.05)
    wait(lambda: manager.alive() and manager.records.quiet(QUIET), "%s is quiet" % manager.name, deadline, poll=0.05)
    r = Reaction(manager.records.since(begin), told, len(fabric.switches))
    r.cpu = manager.cpu() - cpu
    r.sweeps = manager.sweeps_since(mark)
    return r


def say(manager, what, reaction, difference=None):
    note("%s, %s: %s; %.2f s CPU" % (manager, what, reaction.text(), reaction.cpu))
    if difference:
        note("    " + difference.text())
    tell_sweeps(reaction.sweeps)


def tell_sweeps(sweeps):
    for s in sweeps:
        more = "".join(", %s %s" % (k, s[k]) for k in ("full", "devices", "reaction_seconds", "lft_entries", "paths_moved") if k in s)
        note("    sweep %d (%s): %.4f s, %d MADs, %d retries, %d timeouts, %d blocks, %d port Sets%s" % (
            s["id"], s["cause"], s["seconds"], s["mads"], s["retries"], s["timeouts"], s["lft_blocks_set"], s["port_sets"], more))


def load():
    """What else the machine does; times above its number of cores are those of a busy one."""
    note("load %.1f on %d cores" % (os.getloadavg()[0], os.cpu_count()))


def write_net(name, work):
    path = os.path.join(work, name + ".net")
    with open(path, "w") as f:
        subprocess.check_call([WEFTD, "--offline", name, "--print-fabric", "ibsim"], stdout=f)
    return path, Fabric(open(path).read())


# --- weft's own simulator ---


def simulator(work, name, *args):
    """A running weftd on its simulator in real time: 4 us a link and way, 30 us a request."""
    return Weft(work, args=["--simulate", name, "--set", "sim.latency=4us", "--set", "sim.service=30us", *args])


class SimulatedReaction:
    """From the history of sweeps: what all sweeps after the event took together. The last table block: from the trap (`reaction_seconds`) where one sweep did it all, else from the
    beginning of the first sweep to the end of the last that wrote a block. With `told` (traps lost): from then to the end of that sweep."""

    def __init__(self, sweeps, began, told=None):
        self.sweeps = sweeps
        self.mads = sum(s["mads"] for s in sweeps)
        self.lft_sets = sum(s["lft_blocks_set"] for s in sweeps)
        self.last_lft = 0.0
        self.seconds = began(sweeps[-1]) - began(sweeps[0]) + sweeps[-1]["seconds"]
        writing = [s for s in sweeps if s["lft_blocks_set"]]
        if writing:
            last = writing[-1]
            self.last_lft = began(last) - (told or began(sweeps[0])) + last["seconds"]
            if not told and last is sweeps[0] and last.get("reaction_seconds"):
                self.last_lft = last["reaction_seconds"]


def seconds_of(rfc3339):
    m = re.match(r"(.*?)(\.\d+)?Z$", rfc3339)
    return calendar.timegm(time.strptime(m[1], "%Y-%m-%dT%H:%M:%S")) + float(m[2] or 0)


def lose_traps(weft, nodes, on):
    """Tells the simulated fabric to lose all traps of these nodes, or none; False when it cannot."""
    try:
        for node in nodes:
            weft.api.ask("POST", "/fabrics/default/sim/actions", dict(verb="trap-lose", node="0x" + node[2:], **({} if on else dict(count=0))))
        return True
    except RuntimeError as e:
        if ": 404 " in str(e):
            return False
        raise


def simulated_events(weft, fabric, what, cables, up, links, traps_lost=False):
    """Cables [(node, port)] out or in, as fast as the API takes it; a SimulatedReaction once weft is done, None when traps cannot be lost."""
    ends = {n for node, port in cables for n in (node, fabric.link[node][port][0])}
    if traps_lost and not lose_traps(weft, ends, True):
        return None
    mark, told = weft.mark(), time.time()
    for node, port in cables:
        weft.api.ask("POST", "/fabrics/default/sim/link", dict(node="0x" + node[2:], port=port, up=up))
    r = simulated_reaction(weft, what, mark, links, told if traps_lost else None)
    if traps_lost:
        lose_traps(weft, ends, False)
    return r


def simulated_reaction(weft, what, mark, links, told=None):
    still_done(weft, mark, links)
    r = SimulatedReaction(weft.sweeps_since(mark), lambda s: seconds_of(s["began_at"]), told)
    note("simulated, %s:" % what)
    tell_sweeps(r.sweeps)
    return r


def simulated_reboot(weft, fabric, node, seconds):
    """A node loses its power, all its links at once, and has it back after so long: {"down": SimulatedReaction, "up": ...}."""
    mark, links = weft.mark(), fabric.links
    weft.api.ask("POST", "/fabrics/default/sim/actions", dict(verb="node-reboot", node="0x" + node[2:], down_seconds=seconds))
    end = time.monotonic() + seconds
    found = {"down": simulated_reaction(weft, "%s down" % fabric.desc[node], mark, links - len(fabric.link[node]))}
    if time.monotonic() > end:
        raise RuntimeError("weft was not done with %s before it came back: %s" % (fabric.desc[node], weft.tail()))
    found["up"] = simulated_reaction(weft, "%s up" % fabric.desc[node], weft.mark(), links)
    return found


def still_done(weft, mark, links, deadline=120):
    """Done, and a second later there is no sweep more."""
    seen = [None, 0]

    def quiet():
        if not weft.done(mark, links):
            seen[0] = None
            return False
        if weft.mark() != seen[0]:
            seen[:] = [weft.mark(), time.monotonic()]
        return time.monotonic() - seen[1] > QUIET
    wait(quiet, lambda: "weft is done: %s" % weft.tail(), deadline, poll=0.05)
