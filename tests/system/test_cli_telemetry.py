# SPDX-License-Identifier: Apache-2.0
"""A scripted bad day on a simulated fabric: weft health names the cable to pull, weft congestion the host that does not drain; and what
else the commands about counters, alarms and silences say, and refuse."""
import json
import re
import time

import pytest

from weftlib import Daemon, js, need_programs, ok, rows, wait_for

pytestmark = need_programs()
LEAF = "leaf-su01-rail0"
FAST = ("--set", "telemetry.interval=1s", "--set", "telemetry.detail_interval=2s")


@pytest.fixture(scope="module")
def d():
    with Daemon(simulate="rail-256", args=FAST) as daemon:
        daemon.up()
        wait_for(lambda: telemetry(daemon)["sweeps"] >= 3, "three sweeps of counters")
        yield daemon


def telemetry(d):
    return d.get("/fabrics/default")["telemetry"]


def sweeps(d, n):
    before = telemetry(d)["sweeps"]
    wait_for(lambda: telemetry(d)["sweeps"] >= before + n, f"{n} sweeps of counters")


# --- a good day ---

def test_good_day(d):
    out = ok(d.weft("status"))
    assert "1,024 of 1,024 ports read" in out and "alarms   0 critical  0 major  0 minor" in out
    out = ok(d.weft("health"))
    assert " 0 down.\nunsure: too little seen so far" in out and "0 named" in out and "next:" not in out
    assert ok(d.weft("alarm")) == "no alarms\n"
    assert ok(d.weft("congestion")).startswith("nobody waits\n")
    assert "No link need be kept free of traffic: 0 isolated" in ok(d.weft("isolate"))
    assert "no port has any of it\n" == ok(d.weft("top", "--by", "rcv_errors"))


def test_counters(d):
    listed = rows(ok(d.weft("counters", "list", "-o", "csv")))
    assert len(listed) >= 37 and all(r["name"] and r["unit"] and r["doc"] and r["ibta"] for r in listed)
    one = ok(d.weft("counters", f"{LEAF}/33"))
    assert "\npeer_port   1\n" in one and "\nxmit_data " in one and "\nmodule      no source\n" in one
    ports = rows(ok(d.weft("counters", LEAF, "-o", "csv")))
    assert len(ports) == 64 and {p["name"] for p in ports} == {LEAF}
    assert int(ports[0]["xmit_data"]) > 0 and ports[0]["rate.xmit_wait"] != ""
    everything = js(d.weft("counters", "-o", "json"))
    assert len(everything) == 1024
    rail3 = rows(ok(d.weft("counters", "type=ca and rail=3", "-o", "csv")))
    assert len(rail3) == 32 and all(" mlx5_3" in p["name"] for p in rail3)
    assert len(rows(ok(d.weft("counters", "--focus", "type=ca", "rail=3", "-n", "5", "-o", "csv")))) == 5
    assert rows(ok(d.weft("counters", "gpu-0004:3", "-o", "csv")))[0]["counter"] == "xmit_data"
    assert [p["name"] for p in rows(ok(d.weft("counters", "gpu-0004", "-o", "csv")))] == [f"gpu-0004 mlx5_{n}" for n in range(8)]
    lanes = rows(ok(d.weft("counters", f"{LEAF}/33", "--vl", "-o", "csv")))
    assert len(lanes) == 16


def test_ports_and_links(d):
    """What counters tell stands beside what ports and links are."""
    port = rows(ok(d.weft("port", LEAF, "33", "-o", "csv")))[0]
    assert (port["pma"], port["errors"]) == ("read", "0") and port["used"] != "" and port["health"] != ""
    r = d.weft("port", "--focus", "pma=read and node_name=spine-0[12]", "-o", "csv")
    assert r.rc == 0 and rows(r.out) == [] and "nothing matches" in r.err  # globs have no classes
    listed = rows(ok(d.weft("port", "--focus", "pma=read and node_name~spine-0[12]", "-o", "csv")))
    assert len(listed) == 128
    assert ok(d.weft("port", "--focus", "num=33", "-n", "2")).splitlines()[0].split()[:2] == ["NODE", "PORT"]
    links = rows(ok(d.weft("link", "health!=down and kind=trunk", "-o", "csv")))
    assert len(links) == 256 and all(x["health"] for x in links)
    r = d.weft("port")
    assert r.rc == 2 and "of which node?" in r.err


def test_history(d):
    samples = rows(ok(d.weft("counters", f"{LEAF}[33]", "--since", "1h", "--step", "0", "--counter", "xmit_data", "-o", "csv")))
    assert len(samples) >= 2 and {s["counter"] for s in samples} == {"xmit_data"}
    values = [int(s["value"]) for s in samples]
    assert values == sorted(values)
    table = ok(d.weft("counters", f"{LEAF}/33", "--since", "10m"))
    assert table.splitlines()[0].split() == ["TIME", "xmit_data", "rcv_data", "xmit_wait", "(ticks/s)"]
    rails = rows(ok(d.weft("counters", "--by", "rail", "--since", "1m", "--step", "1s", "-o", "csv")))
    assert {r["group"] for r in rails} == {f"rail {n}" for n in range(8)}
    assert d.weft("top", "--by", "xmit", "--since", "10m", "-n", "3").rc == 0
    some = rows(ok(d.weft("counters", "--by", "switch", "rail=3", "--since", "1m", "--step", "1s", "-o", "csv")))
    assert {r["group"] for r in some} == {"leaf-su01-rail3"} and {r["ports"] for r in some} <= {str(n) for n in range(65)}
    r = d.weft("counters", "rail=3", "--since", "1m")
    assert r.rc == 2 and "a FOCUS goes with --by" in r.err
    r = d.weft("counters", "--by", "rail", "rail=3 rale", "--since", "1m")
    assert r.rc == 2 and "no node, host or port is called so" in r.err


# --- the bad day ---

def test_bad_day(d):
    """A host that takes nothing, a cable with symbol errors, and one with a few: who is to blame is said by name."""
    ok(d.weft("sim", "receiver", "gpu-0012:3", "--takes", "0.1%"))
    ok(d.weft("sim", "traffic", "ring", "--load", "60%"))
    ok(d.weft("sim", "errors", "leaf-su01-rail2[44]", "--ber", "1e-9"))
    wait_for(lambda: d.weft("health").rc == 1 and d.weft("congestion").rc == 1, "it is found")
    sweeps(d, 4)

    r = d.weft("health")
    first = r.out.splitlines()[1]
    assert first.startswith("failing ") and "leaf-su01-rail2/44 <-> spine-02/20" in first and "symbol errors" in first, r.out
    assert "replace" in first and "1 named" in r.out and "next: weft " in r.out.splitlines()[-1]

    r = d.weft("congestion")
    lines = r.out.splitlines()
    assert lines[0].startswith("#1  receiver does not drain   gpu-0012 mlx5_3 (rail 3)"), r.out
    assert "leaf-su01-rail3/12 -> gpu-0012 mlx5_3/1" in lines[1] and lines[1].endswith("<- root")
    assert any(line.startswith("    see: ") and "weft node 'gpu-0012 mlx5_3'" in line for line in lines)
    assert not any(line.startswith("#2") for line in lines), "one fault is one jam"
    assert d.weft("congestion", "rail=3").rc == 1 and d.weft("congestion", "rail=4").rc == 0
    assert d.weft("congestion", "gpu-0012").rc == 1 and d.weft("congestion", "gpu-0012:3").rc == 1
    assert d.weft("congestion", "gpu-0013").rc == 0
    for word in ("leaf-su01-rail2/44", "leaf-su01-rail2", "spine-02/20", "spine-02"):
        assert d.weft("health", word).rc == 1, word
    assert d.weft("health", "spine-03").rc == 0
    tree = json.loads(d.weft("congestion", "-o", "json").out)["trees"][0]
    assert (tree["kind"], tree["root"]["name"], tree["root"]["port"]) == ("receiver", "leaf-su01-rail3", 12)
    assert tree["held"] > 0.9 and tree["used"] < 0.05 and tree["share"] > 0.9

    top = rows(ok(d.weft("top", "-n", "1", "-o", "csv")))[0]
    assert top["rail"] == "3" and float(top["value"]) > 0.9
    top = rows(ok(d.weft("top", "--by", "errors", "-n", "1", "-o", "csv")))[0]
    assert (top["name"], top["port"], top["most"]) == ("leaf-su01-rail2", "44", "symbol_errors")
    r = d.weft("status")
    assert r.rc == 1 and "held up (weft congestion)" in r.out and "leaf-su01-rail2/44" in r.out and re.search(r"\nnext: weft (congestion, then weft health|health, then weft congestion)\n$", r.out)


def test_no_false_all_clear(d):
    """What is wrong is found by each way to name it; a name that is none, and a filter, never say that all is well."""
    for word in ("leaf-su01-rail3/12", "leaf-su01-rail3[12]", "gpu-0012:3", "gpu-0012", "gpu-0012 mlx5_3", "rail=3", "node='gpu-0012 mlx5_3'",
                 "role=leaf rail=3", "tier=leaf rail=3"):
        assert d.weft("congestion", word).rc == 1, word
    wait_for(lambda: d.weft("alarm", "rule=C02").rc == 1, "its alarm")
    for word in ("gpu-0012:3", "gpu-0012", "leaf-su01-rail3/12", "rule=C0*", "C02"):
        assert "C02" in d.weft("alarm", word).out, word
    for word in ("leaf-su01-rail2/44", "spine-02/20", "spine-02", "rail=2", "role=spine"):
        assert "leaf-su01-rail2/44" in d.weft("alarm", word).out, word
    assert "leaf-su01-rail2" in ok(d.weft("top", "leaf-su01-rail2/44", "--by", "errors"))
    assert ok(d.weft("top", "rail=4", "--by", "errors")) == "no port there has any of it\n"

    assert ok(d.weft("congestion", "rail=4")).startswith("nothing matches 'rail=4': 1 tree elsewhere\n")
    assert ok(d.weft("health", "rail=9")).startswith("nothing matches 'rail=9'\nThe whole fabric: ")
    assert ok(d.weft("health", "spine-03")).startswith("Nothing wrong there so far.  The whole fabric: ")
    assert re.match(r"nothing matches 'gpu-0013:3': \d+ alarms? elsewhere\n$", ok(d.weft("alarm", "gpu-0013:3")))
    assert ok(d.weft("counters", "held>100%")) == "nothing matches 'held>100%': 1,024 ports elsewhere\n"
    r = d.weft("alarm", "rail=6", "-o", "json")
    assert (r.rc, r.out) == (0, "[]\n") and "nothing matches 'rail=6'" in r.err
    assert "write 'A or B'" in ok(d.weft("health", "spine-02", "spine-03"))
    assert d.weft("health", "spine-02", "or", "spine-03").rc == 1
    for command in ("health", "alarm", "congestion", "counters", "top"):
        for word, why in (("leaf-nope", "leaf-nope"), ("gpu-9999:3", "gpu-9999"),
                          (f"{LEAF}/65", "no port 65"), ("rail=3 rail", "names that contain it"), ("gpu-0012:9", "gpu-0012"),
                          ("role=leef", "it is one of: unknown, host"), ("tier=foot", "leaf, spine, core")):
            r = d.weft(command, word)
            assert r.rc == 2 and why in r.err and r.out == "", (command, word, r)
    for words, why in ((("alarm", "severity=mjor"), "info, minor, major, critical"), (("alarm", "rule=L6"), "it is one of: L01"),
                       (("alarm", "1"), "no node"), (("counters", "held>5"), "write 5% for a percentage"), (("link", "health=bad"), "it is one of"),
                       (("health", "state=bad"), "it is one of")):
        r = d.weft(*words)
        assert r.rc == 2 and why in r.err and r.out == "", (words, r)


def test_errors_over_time(d):
    """How many there were in each step, of one port and of a switch: their sum."""
    samples = rows(ok(d.weft("counters", "leaf-su01-rail2/44", "--since", "1m", "--step", "10s", "--counter", "symbol_errors", "-o", "csv")))
    values = [int(s["value"]) for s in samples]
    assert len(values) >= 2 and values[-1] > values[0]
    def counts(*words):
        table = ok(d.weft("counters", *words, "--since", "2m", "--step", "10s", "--counter", "symbol_errors")).splitlines()
        assert "symbol_errors in 10 s" in table[0], table
        return [int(x.replace(",", "")) for x in (line.split()[-1] for line in table[1:]) if x != "-"]
    assert sum(counts("leaf-su01-rail2/44")) >= values[-1] - values[0]
    assert sum(counts("--by", "switch", "leaf-su01-rail2")) > 0


def test_a_way_over_time(d):
    """Two hosts, one of which takes nothing: the last link of the way is where packets waited, whatever its ends are called."""
    words = ("route", "show", "gpu-0011:3", "gpu-0012:3", "--since", "10m")
    links = rows(ok(d.weft(*words, "-o", "csv")))
    assert [(x["from"], x["to"]) for x in links] == [("gpu-0011 mlx5_3/1", "leaf-su01-rail3/11"), ("leaf-su01-rail3/12", "gpu-0012 mlx5_3/1")]
    assert float(links[1]["held_most"]) > 0.9 and links[1]["errors"] == "0" and links[1]["downs"] == "0"
    out = ok(d.weft(*words))
    assert "link 2 (leaf-su01-rail3/12 to gpu-0012 mlx5_3/1) had to wait " in out and "  reached\n" in out

    def gid(name):
        guid = js(d.weft("node", name, "-o", "json"))["ports"][0]["guid"][2:]
        return "fe80::" + ":".join(guid[i:i + 4] for i in range(0, 16, 4))
    assert js(d.weft("route", "show", gid("gpu-0011:3"), gid("gpu-0012:3"), "--since", "10m", "-o", "json"))["links"][1]["held_most"] > 0.9
    assert "reached\n#  NODE " in ok(d.weft("route", "show", gid("gpu-0011:3"), gid("gpu-0012:3")))
    r = d.weft("route", "show", "gpu-0011:3", "gpu-0012:3", "--since", "soon")
    assert r.rc == 2 and "--since: \"soon\" is no time" in r.err


def test_alarms(d):
    r = d.weft("alarm", "-o", "csv")
    assert r.rc == 1
    alarm = next(a for a in rows(r.out) if a["rule"] == "L07")
    assert alarm["severity"] == "critical" and "leaf-su01-rail2" in alarm["place"]
    r = d.weft("alarm", "show", alarm["id"])
    assert r.rc == 1 and "\nadvice " in r.out and "\nsource " in r.out
    other = next(a["id"] for a in rows(d.weft("alarm", "-o", "csv").out) if a["id"] != alarm["id"])
    out = ok(d.weft("alarm", "ack", alarm["id"], other, "--note", "cable ordered"))
    assert out.startswith(f"alarm {alarm['id']} (L07 ") and f"\nalarm {other} (" in out
    r = d.weft("alarm", "ack", other, "y")
    assert r.rc == 2 and "is no id; see: weft alarm (a note goes behind --note)" in r.err and r.out == ""
    assert "cable ordered" in d.weft("alarm", "show", alarm["id"]).out
    assert alarm["id"] in [str(a["id"]) for a in d.get("/alarms?focus=acked%3Dyes")["items"]]

    out = ok(d.weft("alarm", "silence", alarm["id"], "--for", "2h", "--reason", "cable swap"))
    assert "rule L07" in out and "2 ports and 1 alarm now" in out
    assert "leaf-su01-rail2/44" in out and "0x" not in out
    assert "leaf-su01-rail2/44" in ok(d.weft("silence")) and "0x" not in ok(d.weft("silence"))
    silence = rows(ok(d.weft("silence", "-o", "csv")))[0]
    assert silence["reason"] == "cable swap" and silence["covers"] == "1"
    assert any(a["mark"] == "silenced" for a in rows(d.weft("alarm", "-o", "csv").out) if a["id"] == alarm["id"])
    out = ok(d.weft("maintenance", "rail=2 kind=trunk", "--for", "1h", "--reason", "new optics"))
    assert out.startswith("maintenance ")
    assert len(rows(ok(d.weft("silence", "list", "-o", "csv")))) == 2
    ids = [s["id"] for s in rows(ok(d.weft("silence", "-o", "csv")))]
    assert ok(d.weft("silence", "end", *ids)) == "".join(f"silence {i} is ended\n" for i in ids)
    assert rows(ok(d.weft("silence", "-o", "csv"))) == []
    assert "alarm-raised" in ok(d.weft("event", "--limit", "1000"))


def test_silences(d):
    """What is silenced is said: how much, and that it is nothing."""
    why = ("--for", "1h", "--reason", "x")
    r = d.weft("silence", "add", *why)
    assert r.rc == 2 and "of what? give a focus" in r.err and rows(ok(d.weft("silence", "-o", "csv"))) == []
    assert re.search(r": everything, 1,0\d\d ports and \d+ alarms? now\n$", ok(d.weft("silence", "add", "--all", *why)))
    assert ": rail=3, " in ok(d.weft("silence", "add", "rail=3", *why))
    assert ": gpu-0012:3, 1 port and " in ok(d.weft("silence", "add", "gpu-0012:3", *why))
    assert ", rule C01, " in ok(d.weft("silence", "add", "--rule", "C01", *why))
    for focus in ("rail=99", "leaf-nope/3", "leaf-su01-rail5-*"):
        out = ok(d.weft("maintenance", focus, *why))
        assert "0 ports and 0 alarms now\nwarning: it matches no port now" in out, out
    until = rows(ok(d.weft("silence", "-o", "csv")))
    assert len(until) == 7
    end = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + 86400))
    assert f"until {end}: su=1, " in ok(d.weft("silence", "add", "su=1", "--until", end, "--reason", "x"))
    r = d.weft("silence", "add", "su=1", "--until", "noon", "--reason", "x")
    assert r.rc == 2 and "is no time" in r.err
    r = d.weft("silence", "end", "1", "x")
    assert r.rc == 2 and "is no id; see: weft silence" in r.err
    ok(d.weft("silence", "end", *[s["id"] for s in rows(ok(d.weft("silence", "-o", "csv")))]))


def test_events(d):
    """By time, node, severity and kind; a kind that never was is said to be none."""
    events = [json.loads(line) for line in ok(d.weft("event", "--limit", "1000", "-o", "json")).splitlines()]
    raised = [json.loads(line) for line in ok(d.weft("event", "kind=alarm-raised", "--since", "1h", "-o", "json")).splitlines()]
    assert raised and [e["id"] for e in raised] == [e["id"] for e in events if e["kind"] == "alarm-raised"]
    at = [json.loads(line) for line in ok(d.weft("event", "leaf-su01-rail2/44", "severity!=info", "-o", "json")).splitlines()]
    assert at and all("leaf-su01-rail2" in e["subject"] + e["text"] and e["severity"] != "info" for e in at)
    assert ok(d.weft("event", "gpu-0012:3", "--since", "1h")).count("gpu-0012 mlx5_3") >= 1
    middle = events[len(events) // 2]["time"]
    before = [json.loads(line)["id"] for line in ok(d.weft("event", "--since", "1h", "--until", middle, "-o", "json")).splitlines()]
    assert before and before == [e["id"] for e in events if e["time"] <= middle]
    shown = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", ok(d.weft("event", "-n", "1")))[0]
    for since in (f"{shown} UTC", shown, shown[:16], shown[11:16], shown[:10]):
        assert d.weft("event", "--since", since, "-o", "json").out != "", since
    assert d.weft("counters", f"{LEAF}/33", "--since", shown[11:16]).rc == 0 and d.weft("top", "--since", f"{shown} UTC").rc == 0
    r = d.weft("event", "--kind", "link-remvoed")
    assert r.rc == 0 and 'no event of the kind "link-remvoed" was ever told; those that were: ' in r.err and "alarm-raised" in r.err
    assert ok(d.weft("event", "kind=foo")) == "nothing matches 'kind=foo'\n"
    for words, text in ((("severity=wrning",), "one of: info"), (("sverity=info",), 'did you mean "severity"?'), (("gpu-0012:77",), "gpu-0012:77"),
                        (("--until", "soon"), "is no time"), (("--since", "12:60"), "is no time")):
        r = d.weft("event", *words)
        assert r.rc == 2 and text in r.err and r.out == "", (words, r)


def test_fields_in_help(d):
    """Each field that help lists is taken, and each that weftd answers with is listed."""
    api = d.get("/openapi.json")["components"]["schemas"]

    def scalars(schema, skip=()):
        names = set()
        for name, p in api[schema]["properties"].items():
            if "$ref" not in json.dumps(p) and name not in skip and p.get("type") != "array":
                names.add(name)
        return names
    for command, schema, skip in (("health", "health", ("place",)), ("alarm", "alarm", ("evidence", "name")), ("counters", "counters", ()),
                                  ("congestion", "congestion_port", ()), ("top", "congestion_port", ()), ("node", None, ()), ("port --focus", None, ()),
                                  ("link", None, ()), ("finding", None, ()), ("event", None, ())):
        words = command.split()
        fields = ok(d.weft("help", words[0])).split("\nfields:")[1].split()
        assert len(fields) > 6 and len(fields) == len(set(fields)), (command, fields)
        for f in fields:
            r = d.weft(*words, f.replace("COUNTER", "xmit_wait").replace("FIELD", "speed") + "=none")
            assert r.rc in (0, 1), (command, f, r)
        if schema:
            assert scalars(schema, skip) <= set(fields), (command, scalars(schema, skip) - set(fields))
    for command in ("silence add", "maintenance"):
        fields = ok(d.weft("help", *command.split())).split("\nfields:")[1].split()
        for f in fields:
            assert f"{f}=none" in ok(d.weft(*command.split(), f"{f}=none port=none", "--for", "1h", "--reason", "x"))
    ok(d.weft("silence", "end", *[s["id"] for s in rows(ok(d.weft("silence", "-o", "csv")))]))
    for words in (("alarm", "role=leaf"), ("health", "role=leaf name=leaf-*"), ("finding", "role=leaf"), ("link", "role=leaf"), ("port", "--focus", "role=leaf"),
                  ("alarm", "rail=3 tier=leaf su=1"), ("finding", "rail=3 su=1")):
        assert d.weft(*words).rc in (0, 1), words


def test_isolate(d):
    r = d.weft("isolate", "leaf-su01-rail2/44", "--dry-run")
    assert r.rc == 0 and "nothing stands against it" in r.out and "routes: " in r.out, r
    r = d.weft("isolate", "gpu-0012:3", "--dry-run")
    assert r.rc == 1 and "not isolated: " in r.out
    assert "is isolated" in ok(d.weft("isolate", "leaf-su01-rail2/44", "--reason", "bad optics"))
    assert rows(ok(d.weft("isolate", "list", "-o", "csv")))[0]["state"] == "isolated"
    wait_for(lambda: any("leaf-su01-rail2" in x["name"] and x["state"] == "drained"
                         for x in js(d.weft("drain", "-o", "json"))), "routes move off it")
    ok(d.weft("isolate", "release", "leaf-su01-rail2/44"))
    wait_for(lambda: js(d.weft("drain", "-o", "json")) == [], "it carries traffic again")


def test_over(d):
    ok(d.weft("sim", "traffic", "stop"))
    ok(d.weft("sim", "receiver", "gpu-0012:3", "--takes", "100%"))
    wait_for(lambda: d.weft("congestion").rc == 0, "the jam is over")


def test_links_down(d):
    """A cable that is out is no link any more; it is listed where people look for what is down."""
    assert ok(d.weft("link", "--down")).split() == "A PORT Z PORT LINK GBIT/S KIND STATE".split()
    ok(d.weft("sim", "link", "down", "leaf-su01-rail5[40]"))
    ok(d.weft("sim", "link", "down", "gpu-0009:1"))
    wait_for(lambda: len(rows(ok(d.weft("link", "--down", "-o", "csv")))) == 2, "both are away")
    down = {(x["a"], x["a_port"], x["z"], x["kind"], x["state"]) for x in rows(ok(d.weft("link", "--down", "-o", "csv")))}
    assert down == {("leaf-su01-rail5", "40", "spine-01", "trunk", "down"), ("gpu-0009 mlx5_1", "1", "leaf-su01-rail1", "host", "down")}
    assert len(rows(ok(d.weft("link", "--down", "leaf-su01-rail5", "-o", "csv")))) == 1
    assert len(rows(ok(d.weft("link", "state=down rail=1", "-o", "csv")))) == 1
    assert len(rows(ok(d.weft("link", "gpu-0009 mlx5_1/1", "--down", "-o", "csv")))) == 1
    assert len(rows(ok(d.weft("link", "gpu-0009", "-o", "csv")))) == 7
    assert len(rows(ok(d.weft("link", "leaf-su01-rail5/41", "-o", "csv")))) == 1
    assert len(rows(ok(d.weft("link", "role=spine name=spine-02", "-o", "csv")))) == 64
    assert len(rows(ok(d.weft("link", "tier=spine port=1 health=healthy|unsure|unknown|failing|degraded|flapping|down", "-o", "csv")))) == 4
    assert ok(d.weft("link", "leaf-su01-rail5", "spine-0*")).startswith("nothing matches 'leaf-su01-rail5 spine-0*': 510 others elsewhere")
    for word, why in (("leaf-nope rail=1", "leaf-nope"), ("leaf-su01-rail5/65", "leaf-su01-rail5/65"), ("role=leef", "one of"), ("state=dwn", "one of")):
        r = d.weft("link", word)
        assert r.rc == 2 and why in r.err and r.out == "", (word, r)
    ok(d.weft("sim", "link", "up", "leaf-su01-rail5[40]"))
    ok(d.weft("sim", "link", "up", "leaf-su01-rail1[9]"))
    wait_for(lambda: rows(ok(d.weft("link", "--down", "-o", "csv"))) == [], "they are back")


def test_dead_agent(d):
    wait_for(lambda: telemetry(d)["unread"] == 0, "what came back before is read")
    ok(d.weft("sim", "node", "kill", "gpu-0020:5"))
    wait_for(lambda: telemetry(d)["unread"] == 1, "it is missed")
    wait_for(lambda: "1 not answering (weft counters 'pma!=read')" in d.weft("status").out, "the status says so")

    def listed():
        return [(p["name"], p["pma"]) for p in rows(ok(d.weft("counters", "pma!=read", "-o", "csv")))]
    assert listed() in ([("gpu-0020 mlx5_5", "slow")], [("gpu-0020 mlx5_5", "no-answer")])
    wait_for(lambda: listed() == [("gpu-0020 mlx5_5", "no-answer")], "it is given up")
    assert d.get("/fabrics/default/unread")["items"][0]["name"] == "gpu-0020 mlx5_5"
    ok(d.weft("sim", "node", "revive", "gpu-0020:5"))
    wait_for(lambda: telemetry(d)["unread"] == 0, "it is back")


def test_db(d):
    status = rows(ok(d.weft("db", "status", "-o", "csv")))
    assert [s["fabric"] for s in status] == ["weftd", "default"] and status[1]["series"] == "1024"
    out = ok(d.weft("db", "check"))
    assert out.rstrip().endswith(" 0 damaged")


@pytest.mark.parametrize("words,why", [
    (("counters", "nobody/1"), "nobody"),
    (("counters", "hold>5%"), 'did you mean "held"?'),
    (("counters", "held>"), "missing"),
    (("counters", f"{LEAF}/33", "--since", "often"), "no time"),
    (("counters", f"{LEAF}/33", "--since", "2h", "--step", "soon"), "must be a time such as"),
    (("counters", f"{LEAF}/33", "--since", "2h", "--counter", "xmit_dta"), 'did you mean "xmit_data"? weft counters list has all'),
    (("counters", f"{LEAF}/33", "--since", "2h", "--counter", "zzz"), "weft counters list has all"),
    (("counters", "--since", "2h"), "which ports?"),
    (("counters", "--by", "rack", "--since", "2h"), "one of rail, su, tier, switch"),
    (("counters", LEAF, "--since", "365d", "--step", "1s", "--counter", "all"), "take a longer step"),
    (("top", "--by", "everything"), "and the counters of weft counters list"),
    (("top", "-n", "100000"), "from 1 to 1000"),
    (("alarm", "show", "999999"), "(its end is in weft event --kind alarm-cleared)"),
    (("alarm", "show", "x"), "is no id"),
    (("alarm", "ack", "999999"), "no alarm"),
    (("silence", "add", "rial=3", "--for", "2h", "--reason", "x"), 'did you mean "rail"?'),
    (("silence", "add", "--for", "2h", "--reason", "x"), "give a focus"),
    (("silence", "add", "rail=3", "--for", "2h"), "give --reason"),
    (("silence", "add", "rail=3", "--reason", "x"), "until when?"),
    (("silence", "end", "999999"), "or never was; weft silence lists them"),
    (("maintenance", "su=99x", "--until", "2001-01-01T00:00:00Z", "--reason", "x"), ""),
    (("isolate", LEAF, "--dry-run"), "which port?"),
    (("isolate", "release", f"{LEAF}/50"), ""),
])
def test_refused(d, words, why):
    r = d.weft(*words)
    assert r.rc == 2 and why in r.err and r.out == "", r


def test_only_root_may(d):
    for words in (("alarm", "ack", "1"), ("silence", "add", "--for", "2h", "--reason", "x"), ("db", "check"),
                  ("isolate", f"{LEAF}/50")):
        assert d.weft(*words, uid=65534).rc in (2, 4)
    assert d.weft("isolate", f"{LEAF}/50", "--dry-run", uid=65534).rc == 0
