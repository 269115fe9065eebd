# SPDX-License-Identifier: Apache-2.0
"""Remote write: to Prometheus and VictoriaMetrics through outages, and to a receiver that refuses. What arrives is compared with the store, sample by sample."""
import http.server
import signal
import struct
import threading
import time

import pytest

import outlib
from outlib import Prometheus, VictoriaMetrics, needs, needs_series_tool, now_ms, parse_metrics
from weftlib import Daemon, UnixConnection, need_programs, wait_for

pytestmark = need_programs()
HOUR, MINUTE = 3_600_000, 60_000
FABRIC = "rail-16"
SMALL = dict(fabric="ft3-8-2", interval="1h")  # for a receiver in Python: 188 ports, and but one sweep of weftd's own
EXTERNAL = ("cluster", "a")


def daemon(url, *more, fabric=FABRIC, interval="1s"):
    options = {"telemetry.interval": interval, "remote_write.url": url, "remote_write.interval": "200ms",
               "remote_write.backfill": "2h", "remote_write.labels": "=".join(EXTERNAL)}
    args = [a for k, v in options.items() for a in ("--set", f"{k}={v}")]
    return Daemon(simulate=fabric, args=[*args, *more], start=False)


def store(d):
    return d.dir / "state" / "telemetry" / "default"


def page(d):
    c = UnixConnection(d.socket)
    try:
        c.request("GET", "/metrics")
        return parse_metrics(c.getresponse().read().decode())[0]
    finally:
        c.close()


def own(d, name):
    """A figure of weft's own page; None while it is not there."""
    return page(d).get((("__name__", name), ("fabric", "default")))


def caught_up(d, after=0):
    return own(d, "weft_remote_write_lag_seconds") == 0 and own(d, "weft_remote_write_samples_total") > after


def names_of(d):
    """What /metrics calls a port: {(guid, port): (how the names of its counters begin, labels)}."""
    found = {}
    for key in page(d):
        labels = {k: v for k, v in key if not k.startswith("uplink")}
        name = labels.pop("__name__")
        for kind in ("infiniband_switch_", "infiniband_hca_"):
            if name == f"{kind}uplink_info":
                found[labels["guid"], labels["port"]] = kind, tuple(labels.items())
    return found


def compare(kept, names, got):
    """kept: the store's; got: the receiver's, which may lack only what is as new as anything it has: the last sweep may be on its way."""
    newest = max(max(v) for v in got.values())
    expected = {}
    for (guid, port, metric), samples in kept.items():
        kind, labels = names[guid, port]
        key = tuple(sorted((*labels, ("__name__", kind + metric), EXTERNAL)))
        expected[key] = {t: v for t, v in samples.items() if t <= newest}
    lacking = [k for k, v in expected.items() if set(v) - {newest} and k not in got]
    assert not lacking, lacking[:3]
    for key, samples in got.items():
        late = {newest} - set(samples)
        want = {t: v for t, v in expected[key].items() if t not in late}
        assert samples == want, (key, sorted(set(samples.items()) ^ set(want.items()))[:5])
    return sum(map(len, got.values()))


@needs("victoria-metrics")
@needs_series_tool()
def test_victoriametrics_is_away_for_an_hour(tmp_path):
    vm = VictoriaMetrics(tmp_path / "vm")
    with daemon(f"{vm.url}/api/v1/write") as d, vm:
        outlib.fill(FABRIC, store(d), now_ms() - HOUR - MINUTE, MINUTE, 60)
        d.start()
        d.up()
        wait_for(lambda: own(d, "weft_remote_write_failing") == 1, "the first failure")
        assert own(d, "weft_remote_write_lag_seconds") > 3500
        alarm = wait_for(lambda: [a for a in d.get("/alarms")["items"] if a["rule"] == "W03"], "the alarm")[0]
        assert "min behind" in alarm["reason"], alarm
        assert own(d, "weft_remote_write_samples_total") == 0
        vm.start()
        wait_for(lambda: own(d, "weft_remote_write_samples_total") > 100_000, "some samples")
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        wait_for(lambda: caught_up(d), "all samples")
        # One more sweep of its own, live.
        sent = own(d, "weft_remote_write_samples_total")
        wait_for(lambda: caught_up(d, sent), "a sweep more")
        names = names_of(d)
        assert own(d, "weft_remote_write_dropped_samples_total") == 0
        assert own(d, "weft_remote_write_unnamed_samples_total") == 0
        assert d.stop() == 0
        assert compare(outlib.dump(store(d)), names, vm.samples('{__name__=~"infiniband_.*"}')) > 500_000


@needs("prometheus")
@needs_series_tool()
def test_prometheus_comes_and_goes(tmp_path):
    prometheus = Prometheus(tmp_path / "prometheus")
    with daemon(f"{prometheus.url}/api/v1/write") as d, prometheus:
        outlib.fill(FABRIC, store(d), now_ms() - HOUR - MINUTE, MINUTE, 60)
        prometheus.start()
        d.start()
        wait_for(lambda: own(d, "weft_remote_write_samples_total") and own(d, "weft_remote_write_samples_total") > 50_000, "some samples")
        prometheus.stop(signal.SIGKILL)
        prometheus.start()
        wait_for(lambda: own(d, "weft_remote_write_samples_total") > 200_000, "more samples")
        d.process.send_signal(signal.SIGKILL)
        d.process.wait()
        d.start()
        wait_for(lambda: caught_up(d), "all samples")
        sent = own(d, "weft_remote_write_samples_total")
        wait_for(lambda: caught_up(d, sent), "a sweep more")
        names = names_of(d)
        assert own(d, "weft_remote_write_dropped_samples_total") == 0
        assert d.stop() == 0
        assert compare(outlib.dump(store(d)), names, prometheus.samples('{__name__=~"infiniband_.*"}', 8000)) > 500_000


# --- a receiver of our own ---

def unsnappy(b):
    """One snappy block, by its format description."""
    def varint(i):
        v = shift = 0
        while True:
            v |= (b[i] & 0x7f) << shift
            shift += 7
            i += 1
            if not b[i - 1] & 0x80:
                return v, i
    size, i = varint(0)
    out = bytearray()
    while i < len(b):
        tag = b[i]
        i += 1
        if tag & 3 == 0:
            n = tag >> 2
            if n >= 60:
                k = n - 59
                n = int.from_bytes(b[i:i + k], "little")
                i += k
            out += b[i:i + n + 1]
            i += n + 1
            continue
        if tag & 3 == 1:
            n, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | b[i]
            i += 1
        else:
            k = 2 if tag & 3 == 2 else 4
            n, offset = (tag >> 2) + 1, int.from_bytes(b[i:i + k], "little")
            i += k
        for _ in range(n):
            out.append(out[-offset])
    assert len(out) == size
    return bytes(out)


def fields(b):
    """Protocol buffers: (field, value) of a message."""
    i = 0

    def varint():
        nonlocal i
        v = shift = 0
        while True:
            v |= (b[i] & 0x7f) << shift
            shift += 7
            i += 1
            if not b[i - 1] & 0x80:
                return v
    while i < len(b):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack("<d", b[i:i + 8])[0]
            i += 8
        else:
            n = varint()
            yield tag >> 3, b[i:i + n]
            i += n


def decode(body):
    """[(labels in their order, [(ms, value)])]"""
    found = []
    for _, series in fields(unsnappy(body)):
        labels, samples = [], []
        for field, part in fields(series):
            inner = dict(fields(part))
            if field == 1:
                labels.append((inner[1].decode(), inner[2].decode()))
            else:
                samples.append((inner[2], inner.get(1, 0.0)))
        found.append((labels, samples))
    return found


class Receiver:
    """Answers each request as told: answer(number, series) -> (status, headers)."""

    def __init__(self, answer):
        self.requests, self.taken, self.headers, self.times = 0, [], [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                series = decode(body)
                outer.requests += 1
                outer.times.append(time.monotonic())
                outer.headers.append(dict(self.headers))
                status, headers = answer(outer.requests, series)
                if status is None:  # the connection is cut: nobody knows whether it was taken
                    outer.taken += series
                    self.close_connection = True
                    return
                if status // 100 == 2:
                    outer.taken += series
                self.send_response(status)
                text = b"" if status == 204 else b"no\n"
                for k, v in {**headers, "Content-Length": len(text)}.items():
                    self.send_header(k, str(v))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/write"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def samples_of(series):
    return [(tuple(sorted(labels)), at, v) for labels, samples in series for at, v in samples]


@needs_series_tool()
def test_what_a_receiver_says_is_done(tmp_path):
    """The second request is refused for good, others later; each sample else arrives once and in order."""
    answers = {2: (400, {}), 3: (429, {"Retry-After": 1}), 4: (500, {}), 5: (503, {}), 8: (400, {}), 9: (404, {})}
    refused = []

    def answer(n, series):
        status, headers = answers.get(n, (204, {}))
        if status in (400, 404):
            refused.extend(samples_of(series))
        return status, headers
    token = tmp_path / "token"
    token.write_text("secret-1\n")
    with Receiver(answer) as r, daemon(r.url, "--set", f"remote_write.bearer_token_file={token}", **SMALL) as d:
        outlib.fill(SMALL["fabric"], store(d), now_ms() - HOUR - MINUTE, MINUTE, 40)
        d.start()
        wait_for(lambda: r.requests > 9 and caught_up(d), "all samples")
        names = names_of(d)
        dropped, retries = own(d, "weft_remote_write_dropped_samples_total"), own(d, "weft_remote_write_retries_total")
        events = [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "remote-write-refused"]
        assert d.stop() == 0
        kept = outlib.dump(store(d))
    assert dropped == len(refused) > 10_000
    assert retries == 3
    assert len(events) == 1 and "400" in events[0]["text"], events
    assert r.times[3] - r.times[2] >= 0.99  # Retry-After
    head = r.headers[0]
    assert head["Authorization"] == "Bearer secret-1"
    assert (head["Content-Encoding"], head["Content-Type"], head["X-Prometheus-Remote-Write-Version"]) == \
        ("snappy", "application/x-protobuf", "0.1.0")
    last, got = {}, {}
    for labels, samples in r.taken:
        assert labels == sorted(labels), labels
        key = tuple(labels)
        for at, v in samples:
            assert at > last.get(key, 0), "a sample twice, or out of order"
            last[key] = at
            got.setdefault(key, {})[at] = v
    for key, at, v in refused:
        assert at not in got.get(key, {})
        got.setdefault(key, {})[at] = v
    compare(kept, names, got)


@needs_series_tool()
def test_requests_are_bounded(tmp_path):
    sizes = []

    def answer(n, series):
        sizes.append(sum(len(s) for _, s in series))
        return 204, {}
    with Receiver(answer) as r, daemon(r.url, **SMALL) as d:
        outlib.fill(SMALL["fabric"], store(d), now_ms() - HOUR - MINUTE, MINUTE, 40)
        d.start()
        wait_for(lambda: caught_up(d), "all samples")
        assert d.stop() == 0
    assert max(sizes) <= 10_000
    assert sum(sizes) / len(sizes) > 5000
    assert all(int(h["Content-Length"]) <= 1_000_000 for h in r.headers)


@needs_series_tool()
def test_a_lost_answer_costs_one_request(tmp_path):
    """A connection that is cut may have brought its request or not: it comes again, and nothing else does."""
    with Receiver(lambda n, series: (None, {}) if n in (3, 7) else (204, {})) as r, daemon(r.url, **SMALL) as d:
        outlib.fill(SMALL["fabric"], store(d), now_ms() - HOUR - MINUTE, MINUTE, 40)
        d.start()
        wait_for(lambda: r.requests > 9 and caught_up(d), "all samples")
        names = names_of(d)
        assert d.stop() == 0
        kept = outlib.dump(store(d))
    count = {}
    for s in samples_of(r.taken):
        count[s] = count.get(s, 0) + 1
    assert max(count.values()) == 2
    twice = sum(1 for n in count.values() if n == 2)
    assert 5000 < twice <= 20_000, "two requests"
    got = {}
    for key, at, v in count:
        got.setdefault(key, {})[at] = v
    compare(kept, names, got)


def test_a_bad_setting_is_said(tmp_path):
    for setting, text in (("remote_write.url=ftp://x/", "is no URL of HTTP"), ("remote_write.labels=guid=1", "weft's own"),
                          ("remote_write.labels=x", "not name=value"), ("remote_write.labels=a-b=1", "no name of a label"),
                          ("notify.syslog=tcp://", "none of udp://"), ("notify.alertmanager_url=nothing", "is no URL of HTTP")):
        with Daemon(simulate="rail-8", args=["--set", "remote_write.url=http://127.0.0.1:1/", "--set", setting], start=False) as d:
            with pytest.raises(AssertionError):
                d.start()
            assert text in d.log.read_text(), (setting, d.log.read_text())
