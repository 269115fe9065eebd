# SPDX-License-Identifier: Apache-2.0
"""Alarms to others: a real Alertmanager, a real rsyslogd and a webhook, through outages of theirs and restarts of weftd."""
import datetime
import http.server
import json
import re
import signal
import threading

import pytest

from outlib import Alertmanager, Rsyslogd, needs
from weftlib import Daemon, need_programs, wait_for

pytestmark = need_programs()
VICTIM = "gpu-0001 mlx5_3"  # an adapter whose agents stop answering: S05 after three sweeps, over when it answers
OTHER = "gpu-0002 mlx5_5"


def daemon(**options):
    args = ["--set", "telemetry.interval=1s"]
    for k, v in options.items():
        args += ["--set", f"{k.replace('__', '.')}={v}"]
    return Daemon(simulate="rail-16", args=args)


def kill(d, node=VICTIM):
    assert d.weft("sim", "node", "kill", node).rc == 0


def revive(d, node=VICTIM):
    assert d.weft("sim", "node", "revive", node).rc == 0


def alarm(d, node=VICTIM, active=True):
    """The alarm of the node once it is so."""
    def there():
        return [a for a in d.get("/alarms")["items"] if a["rule"] == "S05" and a["active"] == active and node in a["place"]]
    return wait_for(there, f"an alarm of {node}")[0]


def restart(d, signo=signal.SIGTERM):
    d.process.send_signal(signo)
    d.process.wait()
    d.start()
    d.up()


def figure(d, name, kind):
    from test_remote_write import page
    found = [v for k, v in page(d).items() if dict(k)["__name__"] == name and dict(k)["kind"] == kind]
    return found[0] if found else None


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


@needs("prometheus-alertmanager")
def test_alertmanager(tmp_path):
    with Alertmanager(tmp_path) as am:
        am.start()
        with daemon(notify__alertmanager_url=am.url, notify__resend="1s", notify__external_url="http://weft.example:8470") as d:
            d.up()
            assert am.alerts() == {}
            kill(d)
            a = alarm(d)
            alert = wait_for(lambda: am.alerts().get(("S05", a["subject"])), "the alert")
            assert alert["labels"] == {"alertname": alert["labels"]["alertname"], "rule": "S05", "severity": "minor",
                                       "fabric": "default", "subject": a["subject"], "source": "weft", "story": str(a["id"])}
            assert alert["annotations"]["place"] == a["place"] and VICTIM in alert["annotations"]["summary"]
            assert alert["annotations"]["advice"] and alert["annotations"]["description"] and alert["annotations"]["alarm"] == str(a["id"])
            assert alert["generatorURL"] == f"http://weft.example:8470/api/v1/alarms/{a['id']}"
            assert alert["status"]["state"] == "active"
            began = time_of(alert["startsAt"])
            assert abs((began - time_of(a["since"])).total_seconds()) < 0.01
            # It is sent again: its end moves on.
            wait_for(lambda: am.alerts()[("S05", a["subject"])]["endsAt"] > alert["endsAt"], "it again")

            # Alertmanager forgets; weftd comes and goes; the alarm is the same.
            am.stop(signal.SIGKILL)
            wait_for(lambda: figure(d, "weft_notifications_failing", "alertmanager") == 1, "failures")
            am.start()
            wait_for(lambda: ("S05", a["subject"]) in am.alerts(), "the alert again")
            restart(d, signal.SIGKILL)
            kill(d)  # a simulated fabric is whole again when weftd is started
            again = wait_for(lambda: am.alerts().get(("S05", a["subject"])), "the alert again")
            assert abs((time_of(again["startsAt"]) - began).total_seconds()) < 0.01

            # Another one comes and the first goes while nobody listens.
            am.stop()
            revive(d)
            kill(d, OTHER)
            alarm(d, active=False)
            other = alarm(d, OTHER)
            am.start()
            wait_for(lambda: set(am.alerts()) == {("S05", other["subject"])}, "the other one alone")
            revive(d, OTHER)
            wait_for(lambda: am.alerts() == {}, "no alert")
            assert figure(d, "weft_notifications_refused_total", "alertmanager") == 0


def test_a_dead_pager():
    """Nobody listens at the webhook: an alarm of its own, and a line in the status."""
    with daemon(notify__webhook_url="http://127.0.0.1:9/hook") as d:
        d.up()
        kill(d)  # something to tell
        wait_for(lambda: "has taken nothing for" in d.weft("status").out, "a line in the status", 120)
        dead = wait_for(lambda: [a for a in d.get("/alarms")["items"] if a["rule"] == "W08"], "W08", 180)
        assert dead[0]["severity"] == "major" and "http://127.0.0.1:9/hook" in dead[0]["place"]
        assert "webhook http://127.0.0.1:9/hook has taken nothing for more than 2 min" in dead[0]["reason"]


LINE = re.compile(r"<(\d+)>1 (\S+) (\S+) weftd (\d+) (\S+) \[weft@32473 ((?:[a-z]+=\"(?:[^\"\\\]]|\\.)*\" ?)+)\] (.*)")


def parse(line):
    m = LINE.fullmatch(line)
    assert m, line
    params = dict(re.findall(r'([a-z]+)="((?:[^"\\\]]|\\.)*)"', m[6]))
    return {"pri": int(m[1]), "time": m[2], "host": m[3], "msgid": m[5], **params, "text": m[7]}


@needs("rsyslogd")
@pytest.mark.parametrize("how", ["tcp", "udp", "unix"])
def test_syslog(tmp_path, how):
    with Rsyslogd(tmp_path, how) as syslog:
        syslog.start()
        with daemon(notify__syslog=syslog.target(), notify__facility=16) as d:
            d.up()
            kill(d)
            a = alarm(d)
            wait_for(lambda: len(syslog.lines()) == 1, "a line")
            first = parse(syslog.lines()[0])
            assert first["pri"] == 16 * 8 + 4 and first["msgid"] == "alarm-raised"
            assert (first["id"], first["rule"], first["severity"], first["fabric"], first["subject"]) == \
                (str(a["id"]), "S05", "minor", "default", a["subject"])
            assert VICTIM in first["text"]
            time_of(first["time"])

            # Nobody listens; weftd is killed meanwhile: what was not sent follows, in order, and nothing else.
            syslog.stop(signal.SIGKILL)
            if how == "unix":
                syslog.socket.unlink(missing_ok=True)
            revive(d)
            alarm(d, active=False)
            # Events are on the disk half a second after they happen; three tries take longer.
            wait_for(lambda: figure(d, "weft_notifications_failed_total", "syslog") >= 3, "failures")
            assert figure(d, "weft_notifications_failing", "syslog") == 1
            restart(d, signal.SIGKILL)
            kill(d, OTHER)
            alarm(d, OTHER)
            assert len(syslog.lines()) == 1
            syslog.start()
            wait_for(lambda: len(syslog.lines()) >= 3, "what was missed")
            revive(d, OTHER)
            alarm(d, OTHER, active=False)
            wait_for(lambda: len(syslog.lines()) >= 4, "what is new")
            got = [parse(x) for x in syslog.lines()]
            assert len({x["event"] for x in got}) == len(got), "a line twice"
            ids = [int(x["event"]) for x in got]
            assert ids == sorted(ids)
            told = [str(e["id"]) for e in d.get("/events?limit=1000")["items"] if e["kind"].startswith("alarm-")]
            assert [x["event"] for x in got] == told[:len(got)]
            assert [x["pri"] % 8 for x in got[:2]] == [4, 5]


class Webhook:
    def __init__(self, answer):
        self.bodies = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = answer(len(outer.bodies), body)
                if status == 200:
                    outer.bodies.append(body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_webhook():
    """Each event once and in order, through errors and a restart; what is refused for good is left out and told once."""
    trouble = [503, 404, 500]

    def answer(n, body):
        if n == 0 and trouble:
            return trouble.pop(0)
        return 422 if VICTIM in body[0]["annotations"]["place"] and "endsAt" in body[0] else 200
    with Webhook(answer) as hook, daemon(notify__webhook_url=hook.url) as d:
        d.up()
        kill(d)
        a = alarm(d)
        wait_for(lambda: len(hook.bodies) == 1, "the alarm")
        assert trouble == []
        [alert] = hook.bodies[0]
        assert alert["labels"]["subject"] == a["subject"] and "endsAt" not in alert
        assert abs((time_of(alert["startsAt"]) - time_of(a["since"])).total_seconds()) < 0.01
        revive(d)
        alarm(d, active=False)
        wait_for(lambda: figure(d, "weft_notifications_refused_total", "webhook") == 1, "a refusal")
        restart(d)
        kill(d, OTHER)
        wait_for(lambda: len(hook.bodies) == 2, "the other")
        revive(d, OTHER)
        wait_for(lambda: len(hook.bodies) == 3, "its end")
        assert [OTHER in b[0]["annotations"]["place"] for b in hook.bodies] == [False, True, True]
        assert ["endsAt" in b[0] for b in hook.bodies] == [False, False, True]
        assert len([e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "notify-refused"]) == 1
