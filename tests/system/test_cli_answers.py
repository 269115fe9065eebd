# SPDX-License-Identifier: Apache-2.0
"""weft against answers that a healthy weftd rarely gives: hostile text, several fabrics, lists that break off, silence."""
import http.server
import json
import os
import socketserver
import threading
import urllib.parse

import pytest

from weftlib import weft, weft_on_terminal

pytestmark = pytest.mark.skipif(not os.access(os.environ.get("WEFT", ""), os.X_OK), reason="no program in $WEFT")

EVIL = "leaf\x1b[2J\x1b]0;owned\x07\n\x9b31m\u202egnihtyna\u200b,\"=1+1\" \u00e9"
SHOWN = "leaf\\x1b[2J\\x1b]0;owned\\x07\\n\\u{9b}31m\\u{202e}gnihtyna\\u{200b},\"=1+1\" \u00e9"


def fabric(name, **more):
    return {"name": name, "state": "up", "transport": "t", "nodes": 1, "findings": {"error": 0, "warning": 0, "info": 0},
            "advice": [], **more}


def node(i, name):
    return {"guid": f"0x{i:016x}", "name": name, "type": "switch", "role": "leaf", "lid": i}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self):
        request, _ = super().get_request()
        return request, ("unix", 0)

    def handle_error(self, *_):
        pass  # a client that went away


@pytest.fixture
def serve(tmp_path):
    """serve(answers) -> socket. answers: path -> value, (status, value), or a function of the query; a str is sent as it is."""
    servers = []

    def start(answers):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                url = urllib.parse.urlsplit(self.path)
                value = answers.get(url.path.removeprefix("/api/v1"), (404, {"title": "Not found", "detail": "nothing here"}))
                if callable(value):
                    value = value(dict(urllib.parse.parse_qsl(url.query)))
                status, value = value if isinstance(value, tuple) else (200, value)
                data = (value if isinstance(value, str) else json.dumps(value)).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        path = str(tmp_path / f"s{len(servers)}")
        server = Server(path, Handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return path
    yield start
    for s in servers:
        s.shutdown()
        s.server_close()


def items(*list_, **more):
    return {"items": list(list_), "next": None, "total": len(list_), "generation": 1, **more}


def one(**more):
    return {"/fabrics": items(fabric("default")), **more}


def test_hostile_names_never_reach_the_terminal(serve):
    s = serve({"/fabrics": items(fabric("default")),
               "/fabrics/default/nodes": items(node(1, EVIL)),
               "/fabrics/default/findings": items({"severity": "warning", "code": EVIL, "where": EVIL, "text": EVIL}),
               "/status": {"fabrics": [fabric("default", advice=[EVIL], transport=EVIL)]},
               "/events": items({"id": 1, "time": EVIL, "kind": EVIL, "subject": EVIL, "text": EVIL, "severity": EVIL})})
    for command in (("node",), ("finding",), ("status",), ("event",), ("node", "-o", "csv"), ("node", "-o", "json"),
                    ("api", "GET", "/status"), ("status", "-o", "csv")):
        for out in (weft(*command, socket_path=s).out,
                    weft_on_terminal(*command, "--no-color", socket_path=s, columns=2000).out):
            bad = [c for c in out if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0 or c in "\u202e\u200b"]
            assert not bad, (command, out)
    assert SHOWN in weft("node", socket_path=s).out
    assert '"' + SHOWN.replace('"', '""') + '"' in weft("node", "-o", "csv", socket_path=s).out
    assert json.loads(weft("node", "-o", "json", socket_path=s).out)[0]["name"] == EVIL
    assert "\\u{e9}" in weft("node", socket_path=s, env={"LC_ALL": "C"}).out


def test_hostile_errors(serve):
    s = serve({"/status": (500, {"title": EVIL, "detail": EVIL}), "/fabrics": (503, {"title": "starting"})})
    r = weft("status", socket_path=s)
    assert r.rc == 3 and r.err.count("\n") == 1 and "\x1b" not in r.err and "\\x1b" in r.err
    assert weft("node", socket_path=s).rc == 3


def test_several_fabrics(serve):
    s = serve({"/fabrics": items(fabric("gpu-a"), fabric("gpu b")),
               "/fabrics/gpu%20b/nodes": items(node(1, "x")),
               "/status": {"fabrics": [fabric("gpu-a"), fabric("gpu b", state="failed", error={"text": "no port", "where": "mlx5_0"})]}})
    r = weft("node", socket_path=s)
    assert r.rc == 2 and "--fabric" in r.err and "gpu-a, gpu b" in r.err
    assert weft("node", "-f", "gpu b", socket_path=s).rc == 0
    r = weft("node", "-f", "gpu-c", socket_path=s)
    assert r.rc == 2 and "gpu-a, gpu b" in r.err
    r = weft("status", socket_path=s)
    assert r.rc == 1 and "gpu b  InfiniBand  FAILED" in r.out and "mlx5_0: no port" in r.out
    assert weft("status", "-f", "gpu-a", socket_path=s).rc == 0


@pytest.mark.parametrize("state,errors,rc", [("up", 0, 0), ("up", 1, 1), ("standby", 0, 0), ("offline", 0, 0), ("failed", 0, 1),
                                             ("bringing-up", 0, 1)])
@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_status_exit_code(serve, state, errors, rc, form):
    s = serve({"/status": {"fabrics": [fabric("f", state=state, findings={"error": errors, "warning": 1, "info": 0})]}})
    assert weft("status", "-o", form, socket_path=s).rc == rc


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_status_tells_what_is_no_longer_so(serve, form):
    """Up is what it was: the sweeps since then fail, or nothing can be recorded."""
    for status in ({"fabrics": [fabric("f", error={"text": "no answer", "where": "mlx5_0"}, advice=["look"])]},
                   {"fabrics": [fabric("f")], "database": "disk full"}):
        r = weft("status", "-o", form, socket_path=serve({"/status": status}))
        assert r.rc == 1
        if form == "table":
            assert "disk full" in r.out or "UP (as of its last good sweep)" in r.out


def test_csv_holds_no_formulas(serve):
    s = serve({"/fabrics": items(fabric("default")), "/fabrics/default/nodes": items(node(1, "=cmd|' /C calc'!A0"), node(2, "-x"))})
    out = weft("node", "-o", "csv", socket_path=s).out
    assert '"\'=cmd|' in out and "\"'-x\"" in out

def test_status_wait_runs_out(serve):
    s = serve({"/status": {"fabrics": [fabric("f", state="bringing-up")]}})
    r = weft("status", "--wait", "1", socket_path=s)
    assert r.rc == 5 and "BRINGING-UP" in r.out and "1 s" in r.err


def test_finding_exit_code(serve):
    def of(*severities):
        s = serve(one(**{"/fabrics/default/findings": items(*({"severity": x, "code": "c", "where": x, "text": "t", "count": 1}
                                                              for x in severities))}))
        return s
    assert weft("finding", socket_path=of("info", "warning")).rc == 0
    s = of("info", "error", "warning")
    r = weft("finding", "-o", "csv", "--no-header", socket_path=s)
    assert r.rc == 1 and [line.split(",")[0] for line in r.out.splitlines()] == ["error", "warning", "info"]
    assert len(weft("finding", "--severity", "warning", "--no-header", socket_path=s).out.splitlines()) == 2
    assert weft("finding", "where=info", socket_path=s).rc == 0


def pages(broken_at=None, total=2500):
    def answer(q):
        first, limit = int(q.get("cursor", 0)), int(q["limit"])
        if broken_at is not None and first >= broken_at:
            return 500, {"title": "broken", "detail": "it broke"}
        last = min(first + limit, total)
        return items(*(node(i, f"n{i}") for i in range(first, last)), next=str(last) if last < total else None)
    return answer


def test_pages(serve):
    s = serve(one(**{"/fabrics/default/nodes": pages()}))
    assert [n["name"] for n in json.loads(weft("node", "-o", "json", socket_path=s).out)] == [f"n{i}" for i in range(2500)]
    assert len(json.loads(weft("node", "-o", "json", "--limit", "1700", socket_path=s).out)) == 1700
    assert len(json.loads(weft("node", "lid>=2490", "-o", "json", "--limit", "7", socket_path=s).out)) == 7


def test_a_list_that_breaks_off_is_partial(serve):
    s = serve(one(**{"/fabrics/default/nodes": pages(broken_at=2000)}))
    r = weft("node", "-o", "json", socket_path=s)
    assert r.rc == 6 and len(json.loads(r.out)) == 2000 and "it broke" in r.err
    s = serve(one(**{"/fabrics/default/nodes": pages(broken_at=0)}))
    r = weft("node", "-o", "json", socket_path=s)
    assert (r.rc, r.out) == (3, "")


def test_a_list_without_end_ends(serve):
    s = serve(one(**{"/fabrics/default/nodes": lambda q: items(next="again")}))
    assert weft("node", socket_path=s).rc == 0


@pytest.mark.parametrize("answer", ["", "<html>", "[1, 2", "{}", "[]", '"x"', "7", "null", '{"items": 3}', '{"fabrics": [3]}'])
def test_nonsense(serve, answer):
    s = serve({p: answer for p in ("/status", "/fabrics", "/events")})
    for command in (("status",), ("node",), ("event",), ("status", "-o", "json"), ("route", "show", "a", "b")):
        r = weft(*command, socket_path=s)
        assert 0 <= r.rc <= 6, r


def test_timeout(serve):
    stop = threading.Event()
    s = serve({"/status": lambda q: (stop.wait(60), {})[1]})
    r = weft("status", "--timeout", "1", socket_path=s)
    stop.set()
    assert r.rc == 5 and "--timeout" in r.err


def test_computation_that_is_not_proved(serve):
    result = {"engine": "minhop", "why": "asked for", "seconds": 0.5, "lft_bytes": 10, "peak_rss_bytes": 10,
              "verify": {"ok": False, "seconds": 0.1, "pairs": 7, "counterexample": "a credit loop"},
              "quality": {"ring": {"mean": 1.0, "worst": 0.5}}, "changed": {"entries": 3}, "lft": "Unicast"}
    s = serve(one(**{"/fabrics/default/route-computations": (202, {"id": "7", "state": "running"}),
                     "/jobs/7": {"state": "done", "result": result}}))
    r = weft("route", "compute", socket_path=s)
    assert r.rc == 1 and "NOT PROVED: 7 pairs in 0.100 s; a credit loop" in r.out and "ring  mean 1  worst 0.5" in r.out
    r = weft("route", "compute", "-o", "json", socket_path=s)
    del result["lft"]
    assert r.rc == 1 and json.loads(r.out) == result
    s = serve(one(**{"/fabrics/default/route-computations": (202, {"id": "7"}),
                     "/jobs/7": {"state": "failed", "error": {"text": "out of luck", "where": "engine"}}}))
    r = weft("route", "compute", socket_path=s)
    assert r.rc == 1 and "out of luck" in r.err


def test_route_that_does_not_arrive(serve):
    end = {"guid": "0x1", "name": "a", "port": 1}
    s = serve(one(**{"/fabrics/default/routes": {"from": end, "to": end, "lid": 5, "reached": False, "hops": [
        {"guid": "0x1", "name": "a", "in": None, "out": 1, "link": "4xNDR"}], "error": "no entry at a", "text": "x\ny"}}))
    r = weft("route", "show", "1", "5", socket_path=s)
    assert r.rc == 1 and "NOT REACHED: no entry at a" in r.out
