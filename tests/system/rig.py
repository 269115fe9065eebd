# SPDX-License-Identifier: Apache-2.0
"""What the system tests stand on: ibsim, weftd, their clients, and ways to wait for a condition.

WEFTD names the binary (default: build/bin/weftd). It may carry AddressSanitizer: libumad2sim is preloaded before it.
Every ibsim has a socket name and a folder of its own; processes are ended by their pid.
"""
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFTD = pathlib.Path(os.environ.get("WEFTD", ROOT / "build/bin/weftd")).absolute()
SHARED = pathlib.Path(os.environ.get("WEFT_SHARED", ROOT.parent / "shared"))
DEADLINE = float(os.environ.get("WEFT_TEST_DEADLINE", 60))
UMAD2SIM = next(iter(sorted(pathlib.Path("/usr/lib").glob("**/umad2sim/libumad2sim.so"))), None)
SANITIZED = WEFTD.exists() and b"__asan_init" in WEFTD.read_bytes()


def tool(name):
    """Path of a program, also where only root's PATH has it; None when it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def missing(*names):
    """The reason for a skip, or an empty string."""
    lost = [n for n in names if tool(n) is None]
    if UMAD2SIM is None:
        lost.append("libumad2sim")
    return f"not installed: {', '.join(lost)}" if lost else ""


def wait_until(condition, what, deadline=DEADLINE, poll=0.02):
    """Waits until condition() is true and returns its value. what may be a callable that tells the state at the end."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline:g} s: {what() if callable(what) else what}")
        time.sleep(poll)


def clean_env(**more):
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "TMPDIR", "LANG", "UBSAN_OPTIONS")}
    return {**keep, **{k: str(v) for k, v in more.items()}}


class Ibsim:
    """One ibsim on a .net file, with its console on a FIFO."""
    count = 0

    def __init__(self, net, folder, lids=49152):
        Ibsim.count += 1
        self.net, self.dir = net, pathlib.Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.name = f"weft-test-{os.getpid()}-{Ibsim.count}"
        path = net.write(self.dir / "fabric.net")
        fifo = self.dir / "console"
        os.mkfifo(fifo)
        self.fd = os.open(fifo, os.O_RDWR)
        self.out = self.dir / "ibsim.out"
        ports = sum(n.ports + 1 for n in net.node.values())
        command = [tool("ibsim"), "-s", "-I", "-N", len(net.node) + 10, "-S", len(net.switches) + 10, "-P", ports + 100,
                   "-L", lids, path]
        with open(fifo, "rb", buffering=0) as stdin, open(self.out, "wb") as out, open(self.dir / "ibsim.err", "wb") as err:
            self.proc = subprocess.Popen([str(c) for c in command], stdin=stdin, stdout=out, stderr=err, cwd=self.dir,
                                         env=clean_env(IBSIM_SOCKNAME=self.name))
        try:
            wait_until(self._ready, lambda: f"ibsim ready; it said {self._text()[-400:]}")
        except BaseException:
            self.close()
            raise

    def _text(self):
        return self.out.read_text(errors="replace")

    def _ready(self):
        assert self.proc.poll() is None, f"ibsim ended: {self._text()[-400:]} {(self.dir / 'ibsim.err').read_text()[-400:]}"
        text = self._text()
        return "simulator ready" in text and text.endswith("sim> ")

    def close(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        if self.fd is not None:
            os.close(self.fd)
        self.fd = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def console(self, command):
        """One console command; returns what ibsim printed for it."""
        begin = self.out.stat().st_size
        os.write(self.fd, command.encode() + b"\n")
        answer = []

        def done():
            assert self.proc.poll() is None, "ibsim ended"
            with open(self.out, "rb") as f:
                f.seek(begin)
                answer[:] = [f.read().decode(errors="replace")]
            return answer[0].endswith("sim> ")
        wait_until(done, f'ibsim answers "{command}"', poll=0.002)
        return answer[0]

    def dump(self):
        return Dump(self.console("Dump"))

    def env(self, host, **more):
        """Environment of a client that sits on adapter `host`."""
        return clean_env(IBSIM_SOCKNAME=self.name, SIM_HOST=host, LD_PRELOAD=UMAD2SIM, **more)

    def run(self, host, *command, ok=True, deadline=DEADLINE):
        """A diagnostic tool to its end; returns its standard output."""
        r = subprocess.run([tool(command[0]), *map(str, command[1:])], env=self.env(host), cwd=self.dir, timeout=deadline,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ok:
            assert r.returncode == 0, f"{' '.join(map(str, command))}: {r.returncode}: {r.stdout[-500:]} {r.stderr[-500:]}"
        return r.stdout

    def clients(self):
        """Pids of attached clients, by their slot."""
        found = re.findall(r"^(?:sim> )?Client (\d+): pid (\d+)", self.console("Attached"), re.M)
        return {int(slot): int(pid) for slot, pid in found}

    def forget_dead_clients(self):
        """ibsim keeps the slot of a client that was killed; it has ten."""
        for slot, pid in self.clients().items():
            if not pathlib.Path(f"/proc/{pid}").exists():
                self.console(f"X {slot}")


class Dump:
    """ibsim's own Dump: the fabric as the devices hold it.

    node[name] = {guid, switch, lids, port: {n: (peer or None, peer port, state)}, lft: {lid: port}, top}; end ports in
    end[lid] = (name, port), by_guid[port guid] = lid.
    """
    NODE = re.compile(r'^(Switch|Ca) (\d+) "([^"]*)"\s+nodeguid ([0-9a-f]+)')
    PORT = re.compile(r'^([0-9a-f]+)\t\[(\d+)\](?:\t"([^"]*)"\[(\d+)\])?\s*(?:lid (\d+) lmc (\d+) smlid (\d+))?.*?'
                      r'\b([A-Z][A-Za-z]+)/([A-Z][A-Za-z]+)\b')

    def __init__(self, text):
        self.node, self.lid, self.end, self.smlid = {}, {}, {}, {}
        self.port_guid = {}
        self.doubled = []
        node = None
        for line in text.splitlines():
            line = line.removeprefix("sim> ")
            m = self.NODE.match(line)
            if m:
                node = {"guid": int(m[4], 16), "switch": m[1] == "Switch", "num_ports": int(m[2]), "port": {}, "lft": {}}
                name = m[3]
                self.node[name] = node
                continue
            if node is None:
                continue
            if line.startswith("#") and "FDBtop" in line:
                node["top"] = int(re.search(r"FDBtop (\d+)", line)[1])
            elif line.startswith("#") and "Forwarding table" in line:
                for lid, port in re.findall(r"\[(\d+)\]([0-9A-F]+)", line):
                    if int(port, 16) != 0xFF:
                        node["lft"][int(lid)] = int(port, 16)
            elif (m := self.PORT.match(line)):
                self._port(name, node, m)
        assert self.node, text[:300]

    def _port(self, name, node, m):
        num = int(m[2])
        own = m[3] is not None and m[3] == "Sma Port"
        node["port"][num] = (None if m[3] is None or own else m[3], int(m[4] or 0), m[8])
        if m[5] is None or (node["switch"] and num != 0):
            return
        lid = int(m[5])
        self.lid[name, num] = lid
        self.smlid[name, num] = int(m[7])
        self.port_guid[int(m[1], 16)] = lid
        if lid:
            if lid in self.end:
                self.doubled.append((lid, self.end[lid], (name, num)))
            self.end[lid] = (name, num)

    def walk(self, switch, lid, most=64):
        """(name, port) where a packet for lid ends that enters the fabric at this switch, and the switches it passed."""
        passed = []
        while len(passed) <= most:
            node = self.node[switch]
            passed.append(switch)
            port = node["lft"].get(lid)
            if port is None or lid > node["top"]:
                return None, passed
            if port == 0:
                return (switch, 0), passed
            peer, peer_port, state = node["port"].get(port, (None, 0, ""))
            if peer is None or state != "Active":
                return None, passed
            if not self.node[peer]["switch"]:
                return (peer, peer_port), passed
            switch = peer
        return None, passed


class Failed(Exception):
    pass


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Weftd:
    """weftd as a daemon, with its API on a unix socket. On ibsim, or with its own simulator."""

    def __init__(self, folder, *args, ibsim=None, host=None, name="weftd", preload=None, env=None):
        self.dir = pathlib.Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.socket = self.dir / f"{name}.sock"
        self.state = self.dir / "state"
        self.state.mkdir(exist_ok=True)
        self.log_path = self.dir / f"{name}.log"
        env = {**weftd_env(self.dir, ibsim, host), **{k: str(v) for k, v in (env or {}).items()}}
        if preload:
            env["LD_PRELOAD"] = f"{preload}:{env['LD_PRELOAD']}"
        command = [WEFTD, "--state", self.state, "--socket", self.socket, "--http", "127.0.0.1:0", *args]
        with open(self.log_path, "ab") as log:
            self.proc = subprocess.Popen([str(c) for c in command], env=env, cwd=self.dir, stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()
                raise
        if exc[0] is None:
            log = self.log()
            assert self.proc.returncode == 0, f"weftd ended with {self.proc.returncode}:\n{log[-3000:]}"
            assert "Sanitizer" not in log and "runtime error" not in log, log[-4000:]

    def kill(self):
        self.proc.kill()
        self.proc.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def get(self, path, **query):
        """The decoded answer of GET /api/v1<path>. Failed when it is not 200."""
        return self.request("GET", path, query)

    def request(self, method, path, query=(), body=None):
        assert self.proc.poll() is None, f"weftd ended with {self.proc.returncode}:\n{self.log()[-3000:]}"
        text = "&".join(f"{k.rstrip('_')}={v}" for k, v in dict(query).items())
        c = UnixConnection(self.socket, DEADLINE)
        try:
            c.request(method, f"/api/v1{path}" + (f"?{text}" if text else ""), json.dumps(body) if body is not None else None,
                      {"Content-Type": "application/json"} if body is not None else {})
            answer = c.getresponse()
            data = answer.read()
        finally:
            c.close()
        if answer.status >= 300:
            raise Failed(f"{method} {path}: {answer.status} {data[:500]!r}")
        return json.loads(data)

    def all(self, path, **query):
        """The items of a list, over all its pages."""
        items, cursor = [], None
        while True:
            page = self.get(path, **query, **({"cursor": cursor} if cursor else {}))
            items += page["items"]
            cursor = page["next"]
            if cursor is None:
                assert len(items) == page["total"], (path, len(items), page["total"])
                return items

    def fabric(self):
        return self.get("/fabrics/default")

    def wait_api(self):
        def there():
            assert self.proc.poll() is None, f"weftd ended with {self.proc.returncode}:\n{self.log()[-3000:]}"
            try:
                return self.get("/status")
            except OSError:
                return None
        return wait_until(there, lambda: f"the API answers; log:\n{self.log()[-2000:]}")

    def wait_up(self, deadline=DEADLINE):
        """Until the fabric is up."""
        return self.wait_fabric(lambda f: f["state"] == "up", "up", deadline)

    def wait_fabric(self, condition, what, deadline=DEADLINE):
        self.wait_api()
        last = [None]

        def there():
            last[0] = self.fabric()
            return last[0] if condition(last[0]) else None
        return wait_until(there, lambda: f"fabric {what}: {last[0]}\n{self.log()[-2000:]}", deadline)

    def mads(self):
        """Sent requests by ("PortInfo", "Set")."""
        return {(m["attribute"], m["method"]): m["sent"] for m in self.all("/fabrics/default/mads")}

    def lids(self):
        return read_lids(self.state)


def read_lids(state):
    """LIDs recorded in meta.db: {port guid: lid}."""
    db = sqlite3.connect(pathlib.Path(state) / "meta.db")
    try:
        return {guid & (1 << 64) - 1: lid for guid, lid in db.execute("SELECT guid, lid FROM lid WHERE fabric = 'default'")}
    finally:
        db.close()


def weftd_env(folder, ibsim=None, host=None):
    env = ibsim.env(host) if ibsim else clean_env()
    if SANITIZED:
        rules = pathlib.Path(folder) / "asan.supp"
        rules.write_text("interceptor_via_lib:libumad2sim.so\n")
        env["ASAN_OPTIONS"] = f"verify_asan_link_order=0:suppressions={rules}"
    return env


class Once:
    """A finished `weftd --once`: code, json, stdout, stderr, rss (bytes), seconds."""

    def __init__(self, folder, *args, ibsim=None, host=None, deadline=DEADLINE, once=True):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        command = [WEFTD, *(["--once"] if once else []), *args]
        out, err = folder / "once.out", folder / "once.err"
        began = time.monotonic()
        with open(out, "wb") as o, open(err, "wb") as e:
            p = subprocess.Popen([str(c) for c in command], env=weftd_env(folder, ibsim, host), cwd=folder,
                                 stdin=subprocess.DEVNULL, stdout=o, stderr=e)
            try:
                wait_until(lambda: p.poll() is not None, lambda: f"{command} ends; log:\n{err.read_text()[-2000:]}", deadline)
            finally:
                if p.returncode is None:
                    p.kill()
                    p.wait()
        self.seconds = time.monotonic() - began
        self.code = p.returncode
        self.stdout, self.stderr = out.read_text(errors="replace"), err.read_text(errors="replace")
        assert self.code >= 0, f"{command} died of signal {-self.code}:\n{self.stderr[-2000:]}"
        assert "Sanitizer" not in self.stderr and "runtime error" not in self.stderr, self.stderr[-4000:]
        self.json = json.loads(self.stdout) if self.stdout.startswith("{") else None
