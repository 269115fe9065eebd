# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around the counters of a whole weftd on a simulated fabric: a clock that is set, history that cannot be begun, a full disk, files of a newer weftd,
questions that are absurd."""
import calendar
import http.server
import os
import pathlib
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

import outlib
from outlib import needs_series_tool, parse_metrics
from test_adversity import Shim, fill, small_disk
from test_remote_write import decode
from weftlib import Daemon, UnixConnection, js, need_programs, ok, rows, wait_for, weft

pytestmark = need_programs()
FABRIC = "ft3-8-2"
FAST = ("--set", "telemetry.interval=500ms", "--set", "telemetry.detail_interval=1s")
DAY, HOUR, MINUTE = 86400, 3600, 60
SOON = 30


def telemetry(d):
    return d.get("/fabrics/default")["telemetry"]


def sweeps(d, n):
    before = telemetry(d)["sweeps"]
    wait_for(lambda: telemetry(d)["sweeps"] >= before + n, f"{n} sweeps of counters")


def alarms(d, rule):
    return [a for a in d.get("/alarms")["items"] if a["rule"] == rule]


def standing(d, rule):
    return [a for a in alarms(d, rule) if a["active"]]


def events(d, kind):
    return [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == kind]


def store(d):
    return d.dir / "state" / "telemetry" / "default"


def own(d, name):
    c = UnixConnection(d.socket)
    try:
        c.request("GET", "/metrics")
        return parse_metrics(c.getresponse().read().decode())[0].get((("__name__", name), ("fabric", "default")))
    finally:
        c.close()


def history(d, port, since="5m", step="0"):
    return d.get(f"/fabrics/default/counters/history?port={port}&counter=xmit_data&from={since}&step={step}")["items"]


def a_port(d):
    """Of another leaf than that of weftd's own host."""
    return [n["name"] for n in d.get("/fabrics/default/nodes")["items"] if n["type"] == "switch" and n["name"].startswith("leaf")][1] + "/1"


METRIC = "port_transmit_data_bytes_total"


def written(folder):
    """All points of one port's xmit_data as raw files have them: (guid, port), {ms: bytes}."""
    return next((k[:2], v) for k, v in sorted(outlib.dump(folder).items()) if k[2] == METRIC)


class Sink:
    """A receiver of remote write that takes all and looks at it later."""

    def __init__(self):
        self.bodies = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204)
                self.end_headers()

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

    def points(self, guid, port):
        """Of one port's METRIC, in the order in which they came: [(ms, value)]."""
        return [p for body in self.bodies for labels, samples in decode(body) for p in samples
                if (dict(labels)["guid"], dict(labels).get("port")) == (guid, port) and dict(labels)["__name__"].endswith(METRIC)]


# --- the clock is set ---


class Clock:
    def __init__(self, folder):
        self.shim, self.seconds = Shim(folder), 0

    def env(self):
        return {"LD_PRELOAD": str(self.shim.so), "ADVERSITY": str(self.shim.path)}

    def set(self, ahead):
        self.seconds = ahead
        self.shim.ahead(int(ahead))

    def now(self):
        return time.time() + self.seconds


def seconds_of(text):
    return calendar.timegm(time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S"))


@needs_series_tool()
def test_the_clock_is_set(tmp_path):
    """Two hours and half an hour back, two days forward, over midnight: sweeps, history, remote write and alarms go on; times are the clock's, rates are what they were,
    and nothing that was kept is lost."""
    clock = Clock(tmp_path)
    with Sink() as r, Daemon(simulate=FABRIC, env=clock.env(),
                                     args=[*FAST, "--set", f"remote_write.url={r.url}", "--set", "remote_write.interval=200ms"]) as d:
        d.up()
        sweeps(d, 4)
        port = a_port(d)
        ok(d.weft("sim", "traffic", "all-to-all"))
        ok(d.weft("silence", "add", "rail=1", "--for", "1h", "--reason", "outlives a small step"))
        sweeps(d, 6)
        pace = max(p["rate"] for p in history(d, port)[-3:])
        assert pace > 0
        days = False
        for ahead in (-2 * HOUR, 0, -HOUR / 2, 0, 2 * DAY, 0, DAY - time.time() % DAY - 2):  # the last: two seconds before midnight
            clock.set(ahead)
            before, late = own(d, "weft_remote_write_samples_total"), telemetry(d)["late"]
            sweeps(d, 10)
            t = telemetry(d)
            assert t["nonsense"] == t["resets"] == 0, t
            assert t["late"] - late < 10, "a busy machine may be late now and then; a clock that counts would be each time"
            wait_for(lambda: telemetry(d)["unread"] == 0, "all is read")
            assert abs(seconds_of(t["last_sweep"]) - clock.now()) < SOON
            points = wait_for(lambda: (p := history(d, port, "4s")) and sum(x["rate"] is not None for x in p) >= 5 and p, "points of the last seconds", 2 * MINUTE)
            assert all(abs(seconds_of(p["at"]) - clock.now()) < SOON for p in points)
            rates = [p["rate"] for p in points if p["rate"] is not None]
            assert max(rates) < 3 * pace, (ahead, pace, points)
            wait_for(lambda: own(d, "weft_remote_write_samples_total") > before, "samples are sent on")
            # What the silence covers is the clock's: its end comes with the days, not before.
            if (days := days or ahead == 2 * DAY):
                wait_for(lambda: not d.get("/silences")["items"], "the silence is over", 2 * MINUTE)
            else:
                assert [s["focus"] for s in d.get("/silences")["items"]] == ["rail=1"], ahead
        # Over midnight, while the clock goes as it should.
        day = time.strftime("%Y%m%d", time.gmtime(clock.now()))
        wait_for(lambda: (store(d) / f"raw-{day}.db").exists(), "a file of the new day")
        wait_for(lambda: len(history(d, port, "6s")) >= 7, "points of the new day", 2 * MINUTE)
        assert len(events(d, "silence-ended")) == 1
        assert alarms(d, "W05"), "it is told"
        assert not standing(d, "W01") and not standing(d, "W02") and not standing(d, "W03")
        wait_for(lambda: own(d, "weft_remote_write_lag_seconds") == 0, "all is sent")
        assert own(d, "weft_remote_write_dropped_samples_total") == 0
        assert own(d, "weft_history_left_out_total") == 0, "no sweep was left out"
        kept = own(d, "weft_history_sweeps_total")
        assert d.stop() == 0
        (guid, number), points = written(store(d))
        # Each sweep is there once, at a time of its own; and so it was sent, in the order in which it was counted.
        assert kept <= len(points) <= kept + 20, (kept, len(points))
        got = r.points(guid, number)
        assert [v for _, v in got] == sorted(v for _, v in got) and len(got) == len(dict(got))
        assert dict(got).items() <= points.items() and len(points) - len(got) <= 3


def test_a_clock_that_is_wrong_at_the_start(tmp_path):
    """Ten years ahead until somebody sets it right: no event and no counter that was kept is taken for old."""
    clock = Clock(tmp_path)
    with Daemon(simulate=FABRIC, env=clock.env(), args=FAST) as d:
        d.up()
        sweeps(d, 4)
        first = events(d, "fabric-up")
        points = history(d, a_port(d))
        assert len(first) == 1 and len(points) >= 3 and d.stop() == 0
        clock.set(10 * 365 * DAY)
        d.start()
        d.up()
        sweeps(d, 4)
        ok(d.weft("silence", "add", "rail=1", "--for", "1h", "--reason", "something that is written behind all else"))
        wait_for(lambda: events(d, "silence-begun"), "its event")
        assert events(d, "fabric-up")[:1] == first
        assert d.stop() == 0
        clock.set(0)
        d.start()
        d.up()
        sweeps(d, 2)
        assert events(d, "fabric-up")[:1] == first and len(events(d, "fabric-up")) == 3
        assert history(d, a_port(d))[:len(points)] == points


# --- history that cannot be begun ---


def not_kept(d, why):
    """It is said everywhere, and all else goes on."""
    sweeps(d, 2)
    assert why in telemetry(d)["history"], telemetry(d)["history"]
    out = d.weft("status").out
    assert "history" in out and why in out, out
    db = [r for r in rows(ok(d.weft("db", "status", "-o", "csv"), 1)) if r["fabric"] == "default"]
    assert why in ",".join(db[0].values()), db
    wait_for(lambda: standing(d, "W02"), "its alarm")
    assert why in standing(d, "W02")[0]["reason"] and standing(d, "W02")[0]["severity"] == "major"
    r = d.weft("counters", a_port(d), "--since", "5m")
    assert r.rc == 2 and why in r.err and r.out == "", r
    assert why in d.weft("db", "check").err
    assert int(rows(ok(d.weft("counters", a_port(d).split("/")[0], "-o", "csv")))[0]["xmit_data"]) >= 0


def begins(d):
    """By itself, once what was in its way is gone; and the log says so once."""
    wait_for(lambda: telemetry(d)["history"] is None, "history")
    sweeps(d, 4)
    port = a_port(d)
    points = history(d, port)
    assert len(points) >= 3
    wait_for(lambda: not standing(d, "W02"), "its alarm ends")
    log = d.log.read_text()
    assert log.count(" history-off ") == 1 and log.count(" history-on ") == 1, log
    wait_for(lambda: telemetry(d)["unread"] == 0, "all is read")
    assert telemetry(d)["ports"] > 100
    return points


@needs_series_tool()
def test_a_file_in_the_place_of_history(tmp_path):
    """Remote write, which lives on history, begins with it; and ports have the numbers that a history of before has given them."""
    with Sink() as r, Daemon(simulate=FABRIC, start=False, args=[*FAST, "--set", f"remote_write.url={r.url}", "--set", "remote_write.interval=200ms"]) as d:
        store(d).parent.mkdir(parents=True)
        store(d).write_text("not a folder\n")
        d.start()
        d.up()
        not_kept(d, "cannot make the folder of telemetry: Not a directory")
        assert r.bodies == [] and "remote-write-off" in d.log.read_text()
        store(d).unlink()
        # Another fabric's history lies there: its ports are not ours, and have the first numbers.
        outlib.fill("rail-16", store(d), outlib.now_ms() - HOUR * 1000, MINUTE * 1000, 30)
        begins(d)
        guid, number = next((n["guid"], 1) for n in d.get("/fabrics/default/nodes")["items"] if n["name"] == a_port(d).split("/")[0])
        now = d.get(f"/fabrics/default/counters?node={a_port(d)}")["items"][0]["value"]["xmit_data"]
        assert abs(history(d, a_port(d))[-1]["value"] - now) < 10_000_000
        wait_for(lambda: r.bodies, "samples are sent")
        assert d.log.read_text().count(" remote-write-on ") == 1
        assert d.stop() == 0
        kept = outlib.dump(store(d))
        assert any(k[0] == guid and k[1] == str(number) for k in kept), sorted(kept)[:3]
        assert r.points(guid, str(number)) == sorted(r.points(guid, str(number)))


def test_history_that_only_root_may_write(tmp_path):
    """As somebody else than root: a folder without the right to write."""
    with Daemon(simulate=FABRIC, start=False, args=FAST) as d:
        if os.getuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("only root can run weftd as somebody else")
        state = d.dir / "state"
        (state / "telemetry").mkdir(parents=True)
        for path in (d.dir, state):
            os.chown(path, 65534, 65534)
        d.command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *d.command]
        d.start()
        d.up()
        not_kept(d, "Permission denied")
        os.chown(state / "telemetry", 65534, 65534)
        begins(d)


# --- a full disk ---


def test_a_full_disk_at_the_start(tmp_path):
    """meta.db is there, history is not: it begins when there is room."""
    with small_disk(tmp_path / "disk", "8m"), Daemon(simulate=FABRIC, start=False, args=FAST) as d:
        state = tmp_path / "disk/state"
        d.command[d.command.index("--state") + 1] = str(state)
        d.start()
        d.up()
        assert d.stop() == 0
        shutil.rmtree(state / "telemetry")
        fill(state)
        d.start()
        d.up()
        wait_for(lambda: telemetry(d)["history"], "it is not kept")
        assert "the disk is full; history goes on by itself when there is space" in telemetry(d)["history"]
        wait_for(lambda: [a for a in standing(d, "W02") if a["subject"] == "history"], "its alarm")
        assert d.weft("counters", a_port(d), "--since", "5m", "-o", "csv").rc == 0
        sweeps(d, 4)
        (state / "filler").unlink()
        wait_for(lambda: telemetry(d)["history"] is None, "history")
        sweeps(d, 4)
        assert len(history(d, a_port(d))) >= 3
        wait_for(lambda: not standing(d, "W02"), "its alarms end")


def test_the_disk_is_full_while_counters_are_kept(tmp_path):
    """Collecting, alarms and the API go on; history pauses, is told to, and resumes: what is lost is the time of the full disk alone."""
    with small_disk(tmp_path / "disk", "12m"), Daemon(simulate=FABRIC, start=False, args=FAST) as d:
        state = tmp_path / "disk/state"
        d.command[d.command.index("--state") + 1] = str(state)
        d.start()
        d.up()
        sweeps(d, 6)
        port = a_port(d)
        before = history(d, port)
        assert len(before) >= 4
        fill(state)
        wait_for(lambda: telemetry(d)["history"], "it pauses")
        assert "full" in telemetry(d)["history"]
        wait_for(lambda: [a for a in standing(d, "W02") if a["subject"] == "history"], "its alarm")
        assert own(d, "weft_history_writing") == 0
        # All else goes on: a cable that goes is told of, counters are read and shown.
        ok(d.weft("sim", "link", "down", port.replace("/1", "[1]")))
        wait_for(lambda: standing(d, "L01"), "a cable that is down")
        ok(d.weft("sim", "link", "up", port.replace("/1", "[1]")))
        sweeps(d, 10)
        wait_for(lambda: telemetry(d)["unread"] == 0, "all is read")
        assert "full" in d.weft("status").out and d.weft("top", "--by", "xmit_data").rc == 0
        assert history(d, port, "10m")[:len(before)] == before, "what was kept is still answered"
        left_out = own(d, "weft_history_left_out_total")
        assert left_out >= 5
        (state / "filler").unlink()
        wait_for(lambda: telemetry(d)["history"] is None, "it resumes")
        wait_for(lambda: not standing(d, "W02"), "its alarms end")
        sweeps(d, 4)
        after = history(d, port, "10m")
        assert after[:len(before)] == before and len(after) >= len(before) + 3
        assert own(d, "weft_history_writing") == 1
        log = d.log.read_text()
        assert log.count(" series-write-failed ") == 1 and log.count(" series-write-recovered ") == 1, log
        assert " 0 damaged" in ok(d.weft("db", "check"))


# --- files of a newer weftd ---


def schema(path, version=None):
    db = sqlite3.connect(path)
    try:
        was = db.execute("PRAGMA user_version").fetchone()[0]
        if version is not None:
            db.execute(f"PRAGMA user_version = {version}")
            db.commit()
        return was
    finally:
        db.close()


def test_history_of_a_newer_weftd():
    """It is left as it is and said; counters, alarms and the API go on; what this weftd knows again is taken up."""
    with Daemon(simulate=FABRIC, args=FAST) as d:
        d.up()
        sweeps(d, 4)
        kept = len(history(d, a_port(d)))
        assert kept >= 3 and d.stop() == 0
        path, = store(d).glob("raw-*.db")
        own_version = schema(path, 99)
        before = path.read_bytes()
        d.start()
        d.up()
        not_kept(d, "schema version 99, this weftd knows up to")
        assert path.read_bytes() == before and len(list(store(d).glob("raw-*"))) == 1
        schema(path, own_version)
        assert len(begins(d)) > kept
        assert " 0 damaged" in ok(d.weft("db", "check"))


def test_a_database_of_a_newer_weftd():
    """weftd does not run on it, says why in one line, and changes nothing."""
    with Daemon(simulate=FABRIC, args=FAST) as d:
        d.up()
        assert d.stop() == 0
        path = d.dir / "state/meta.db"
        schema(path, 999)
        before = path.read_bytes()
        r = subprocess.run(d.command, capture_output=True, text=True, timeout=60, env=d.env, check=False)
        assert r.returncode == 1 and r.stdout == ""
        assert r.stderr.count("\n") == 1 and "schema version 999" in r.stderr and "a newer weftd wrote it" in r.stderr, r.stderr
        assert path.read_bytes() == before


# --- absurd questions ---


@pytest.fixture(scope="module")
def idle():
    with Daemon(simulate=FABRIC, args=FAST) as daemon:
        daemon.up()
        sweeps(daemon, 6)
        yield daemon


LARGE = "take a longer step"
ABSURD = [  # of history, what is said; None: an answer
    ("from=2h&to=3h", '"from" is not before "to"'), ("from=1h&to=1h", '"from" is not before "to"'), ("to=1970-01-01T00:00:00Z&from=0", "the time is empty"),
    ("from=9999-01-01T00:00:00Z", '"from" must be a time'), ("to=9999-12-31T23:59:59Z", '"to" must be a time'), ("from=0001-01-01T00:00:00Z", '"from" must be a time'),
    ("from=-1", '"from" must be'), ("from=99999999999999999999d", '"from" must be'), ("from=1e300", '"from" must be'), ("from=nan", '"from" must be'), ("from=%00", "control character"),
    ("from=0", None), ("from=1970-01-01T00:00:00Z", None), ("from=3650d", None), ("step=0", None), ("step=-1s", '"step" must be'), ("step=1ns", '"step" must be'),
    ("step=99999999999999999d", '"step" must be'), ("step=3650d", None), ("from=366d&step=1s", LARGE), ("from=3650d&step=0", LARGE), ("counter=all&from=366d&step=1m", LARGE),
]


@pytest.mark.parametrize("query, said", ABSURD)
def test_absurd_questions(idle, query, said):
    """A bounded answer, or a refusal that says what would do; at once."""
    began = time.monotonic()
    status, answer = idle.request("GET", f"/fabrics/default/counters/history?port={a_port(idle)}&{query}")
    if said is None:
        assert status == 200 and len(answer["items"]) <= 20_000, answer
    else:
        assert status == 400 and said in answer["detail"] and len(answer["detail"]) < 500, answer
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize("query, said", [("by=switch&from=366d&step=1s", LARGE), ("by=tier&from=3650d&step=0", LARGE),
                                         ("by=rail&from=366d&step=10s", "that would read about")])
def test_absurd_questions_of_groups(idle, query, said):
    status, answer = idle.request("GET", f"/fabrics/default/counters/history?{query}")
    assert status == 400 and said in answer["detail"], answer


@pytest.mark.parametrize("words, said", [
    (("--since", "9999-01-01T00:00:00Z"), "is no time"), (("--since", "-2h"), "is no time"), (("--since", "2h", "--until", "3h"), '"from" is not before "to"'),
    (("--since", "2h", "--step", "-5s"), "must be a time such as"), (("--since", "366d", "--step", "1s"), LARGE), (("--since", "99999999999999d"), "is no time"),
    (("--since", "100000d"), "is no time"), (("--since", "36500d"), None), (("--since", "2h", "--step", "0"), None),
])
def test_absurd_questions_at_the_command_line(idle, words, said):
    r = idle.weft("counters", a_port(idle), *words)
    assert (r.rc, said or "") == (2, said) if said else r.rc == 0, r
    assert said is None or (said in r.err and r.out == ""), r
