# SPDX-License-Identifier: Apache-2.0
"""Those that weft sends to, as real programs on loopback: Prometheus, VictoriaMetrics, Alertmanager, rsyslogd.

Each has a folder of its own and is ended by its pid. A port is picked before its program runs, so that weftd can be told of it first.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from rig import tool
from weftlib import clean_environment, wait_for

SERIES_TOOL = os.environ.get("SERIES_TOOL", "")


def needs(*programs):
    """A mark for tests that need these."""
    lost = [p for p in programs if tool(p) is None]
    return pytest.mark.skipif(bool(lost), reason=f"not installed: {', '.join(lost)}")


def needs_series_tool():
    return pytest.mark.skipif(not os.access(SERIES_TOOL, os.X_OK), reason="no program in $SERIES_TOOL")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Program:
    """A program with a port; start() and stop() as often as a test likes."""

    def __init__(self, folder, port=None):
        self.dir = pathlib.Path(folder)
        self.dir.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def command(self):
        raise NotImplementedError

    def ready(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False

    def start(self):
        with open(self.dir / "log", "ab") as log:
            self.process = subprocess.Popen([str(c) for c in self.command()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.dir, env=clean_environment())
        wait_for(lambda: self.process.poll() is not None or self.ready(), type(self).__name__)
        assert self.process.poll() is None, self.log()[-2000:]
        return self

    def stop(self, signo=signal.SIGTERM):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signo)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def log(self):
        return (self.dir / "log").read_text(errors="replace")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def get(self, path, **query):
        with urllib.request.urlopen(f"{self.url}{path}?{urllib.parse.urlencode(query)}", timeout=60) as r:
            return r.read().decode()

    def answers(self, path):
        try:
            self.get(path)
            return True
        except (OSError, urllib.error.URLError):
            return False


class Prometheus(Program):
    """2.42 or later; config: its file. Takes remote write."""

    def __init__(self, folder, config="global: {}\n", port=None):
        super().__init__(folder, port)
        (self.dir / "prometheus.yml").write_text(config)

    def command(self):
        return [tool("prometheus"), f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--web.enable-remote-write-receiver", "--log.level=warn",
                "--storage.tsdb.retention.time=10d"]

    def ready(self):
        return self.answers("/-/ready")

    def query(self, query, at=None):
        answer = json.loads(self.get("/api/v1/query", query=query, **({"time": f"{at:.3f}"} if at else {})))
        assert answer["status"] == "success", answer
        return answer["data"]["result"]

    def samples(self, selector, seconds):
        """{(labels as a sorted tuple of pairs): {ms: value}} of the last seconds."""
        found = {}
        for series in self.query(f"{selector}[{int(seconds)}s]"):
            found[tuple(sorted(series["metric"].items()))] = {round(t * 1000): float(v) for t, v in series["values"]}
        return found


class VictoriaMetrics(Program):
    def command(self):
        return [tool("victoria-metrics"), f"-storageDataPath={self.dir}/data", f"-httpListenAddr=127.0.0.1:{self.port}",
                "-retentionPeriod=12", "-loggerLevel=WARN", "-search.latencyOffset=0s", "-search.maxUniqueTimeseries=1000000"]

    def ready(self):
        return self.answers("/health")

    def samples(self, selector):
        """The same of all that it has."""
        self.get("/internal/force_flush")
        found = {}
        for line in self.get("/api/v1/export", **{"match[]": selector, "reduce_mem_usage": "1"}).splitlines():
            series = json.loads(line)
            values = found.setdefault(tuple(sorted(series["metric"].items())), {})
            values.update(zip(series["timestamps"], map(float, series["values"])))
        return found


class Alertmanager(Program):
    CONFIG = "route: {receiver: none, group_wait: 1s, group_interval: 1s}\nreceivers: [{name: none}]\nglobal: {resolve_timeout: 5m}\n"

    def command(self):
        (self.dir / "alertmanager.yml").write_text(self.CONFIG)
        return [tool("prometheus-alertmanager"), f"--config.file={self.dir}/alertmanager.yml", f"--storage.path={self.dir}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--cluster.listen-address=", "--log.level=warn"]

    def ready(self):
        return self.answers("/-/ready")

    def alerts(self):
        """Those that hold, by (rule, subject)."""
        return {(a["labels"]["rule"], a["labels"]["subject"]): a for a in json.loads(self.get("/api/v2/alerts"))}


class Rsyslogd(Program):
    """Writes what it gets, in RFC 5424 again, to messages. how: udp, tcp (octet counting), unix."""

    def __init__(self, folder, how, port=None):
        super().__init__(folder, port)
        self.how = how
        self.socket = self.dir / "log.sock"
        self.messages = self.dir / "messages"

    def target(self):
        return f"unix:{self.socket}" if self.how == "unix" else f"{self.how}://127.0.0.1:{self.port}"

    def command(self):
        source = {"udp": f'module(load="imudp") input(type="imudp" address="127.0.0.1" port="{self.port}")',
                  "tcp": f'module(load="imptcp") input(type="imptcp" address="127.0.0.1" port="{self.port}" SupportOctetCountedFraming="on")',
                  "unix": f'module(load="imuxsock" SysSock.Use="off") input(type="imuxsock" Socket="{self.socket}" '
                          'useSpecialParser="off" parseHostname="on" RateLimit.Interval="0")'}[self.how]
        (self.dir / "rsyslog.conf").write_text(f"""
global(workDirectory="{self.dir}" maxMessageSize="64k" parser.permitSlashInProgramName="on")
{source}
template(name="all" type="string" string="<%PRI%>%PROTOCOL-VERSION% %TIMESTAMP:::date-rfc3339% %HOSTNAME% %APP-NAME% %PROCID% %MSGID% %STRUCTURED-DATA% %msg%\\n")
action(type="omfile" file="{self.messages}" template="all" flushOnTXEnd="on" asyncWriting="off")
""")
        return [tool("rsyslogd"), "-n", "-i", self.dir / "pid", "-f", self.dir / "rsyslog.conf"]

    def ready(self):
        if self.how == "tcp":
            return super().ready()
        if self.how == "unix":
            return self.socket.exists()
        return f":{self.port:04X} " in pathlib.Path("/proc/net/udp").read_text()

    def lines(self):
        return self.messages.read_text(errors="replace").splitlines() if self.messages.exists() else []


SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')
ESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse_metrics(text):
    """A page: {sorted tuple of labels with __name__: value}, {family: type}; asserts its form."""
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, f"family {name} comes twice"
            types[name] = kind
        elif not line.startswith("#"):
            m = SAMPLE.match(line)
            assert m, line
            labels = {k: re.sub(r'\\.', lambda e: ESCAPE[e[0]], v) for k, v in LABEL.findall(m[2] or "")}
            key = tuple(sorted({**labels, "__name__": m[1]}.items()))
            assert key not in samples, f"{line}: twice"
            samples[key] = float(m[3])
    return samples, types


def fill(fabric, folder, start_ms, step_ms, sweeps):
    """A store with that much history, as weftd would have written it."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    subprocess.run([SERIES_TOOL, "fill", fabric, str(folder), str(start_ms), str(step_ms), str(sweeps)], check=True, timeout=60)


def dump(folder):
    """All that a store has: {(guid, port, metric): {ms: value}}."""
    r = subprocess.run([SERIES_TOOL, "dump", str(folder)], timeout=60, capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    found = {}
    for line in r.stdout.splitlines():
        guid, port, ms, metric, value = line.split(" ")
        found.setdefault((guid, port, metric), {})[int(ms)] = float(int(value))
    return found


def now_ms():
    return int(time.time() * 1000)
