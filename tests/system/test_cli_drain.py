# SPDX-License-Identifier: Apache-2.0
"""weft link drain, node drain and back, against a real weftd on a simulated fabric: a cable and a switch are swapped."""

import pytest

from weftlib import Daemon, js, need_programs, ok, wait_for, weft

pytestmark = need_programs()
LEAF = "leaf-su01-rail0"
CABLE = f"{LEAF}[33]"


@pytest.fixture(scope="module")
def d():
    with Daemon(simulate="rail-256") as daemon:
        yield daemon.up()


def used(d, *names):
    """Whether some route between hosts passes one of these."""
    hosts = [f"gpu-{n:04}:{rail}" for n in (1, 32) for rail in (0, 3)]
    routes = [ok(d.weft("route", "show", a, b)) for a in hosts for b in hosts if a != b]
    return any(n in r for n in names for r in routes)


def test_swap_a_cable(d):
    assert ok(d.weft("drain", "-o", "csv")).count("\n") == 1
    assert "proved; written in" in ok(d.weft("link", "drain", LEAF, "33", "--check"))
    assert "drained" not in ok(d.weft("status"))
    out = ok(d.weft("link", "drain", LEAF, "33", "--reason", "bad optics"))
    assert out.startswith(f"{CABLE} is drained: nothing uses it\n") and "table entries" in out and "paths moved" in out
    assert ok(d.weft("link", "drain", CABLE)) == f"{CABLE} is drained already: nothing uses it\n"
    assert f"drained  {CABLE}   (weft drain)" in ok(d.weft("status"))
    row = js(d.weft("drain", "-o", "json"))[0]
    assert (row["name"], row["far"], row["state"], row["reason"], row["ends"]) == (CABLE, "spine-01[1]", "drained", "bad optics", 0)
    assert "bad optics" in ok(d.weft("finding"))

    ok(d.weft("sim", "link", "down", CABLE))
    wait_for(lambda: "drained-link-down" in ok(d.weft("event")), "the cable is out")
    assert "link-removed" not in ok(d.weft("event"))
    ok(d.weft("sim", "link", "up", CABLE))
    wait_for(lambda: "drained-link-up" in ok(d.weft("event")), "the new cable is in")
    assert js(d.weft("drain", "-o", "json"))[0]["state"] == "drained"

    assert ok(d.weft("link", "undrain", "spine-01", "1")).startswith(f"spine-01[1] is undrained\n")
    assert f"{CABLE} is undrained: traffic passes" in ok(d.weft("status"))
    assert js(d.weft("drain", "-o", "json")) == []
    assert ok(d.weft("link", "undrain", LEAF, "33")) == f"{CABLE} is not drained\n"


def test_swap_a_switch(d):
    out = ok(d.weft("node", "drain", "spine-03"))
    assert out.startswith("spine-03 is drained: nothing passes through it\n")
    assert not used(d, "spine-03")
    ok(d.weft("route", "show", "gpu-0001:0", "spine-03"))  # it is reached itself
    ok(d.weft("sim", "switch", "reboot", "spine-03"))
    wait_for(lambda: js(d.weft("api", "GET", "/fabrics/default"))["state"] == "up", "the fabric is up")
    assert js(d.weft("drain", "-o", "json"))[0]["name"] == "spine-03"
    r = d.weft("node", "undrain", "spine-03", "--check")
    assert r.rc == 0 and "would change" in r.out and "without another way" not in r.out
    assert ok(d.weft("node", "undrain", "spine-03")).startswith("spine-03 is undrained\n")


def test_a_dead_switch(d):
    ok(d.weft("sim", "node", "kill", "spine-04"))
    ok(d.weft("resweep", "--wait"))
    wait_for(lambda: "node-removed" in ok(d.weft("event")), "it is gone")
    assert ok(d.weft("node", "drain", "spine-04")).startswith("spine-04 is drained: switch 0x")
    row = js(d.weft("drain", "-o", "json"))[0]
    assert (row["name"], row["state"], row["cables"]) == ("spine-04", "away", 0)
    assert row["node"] in ok(d.weft("drain")) and "drained-away" in d.weft("finding").out
    ok(d.weft("sim", "node", "revive", "spine-04"))
    ok(d.weft("resweep", "--wait"))
    wait_for(lambda: js(d.weft("drain", "-o", "json"))[0]["state"] == "drained", "it is back")
    ok(d.weft("node", "undrain", row["node"]))


def test_many(d):
    out = ok(d.weft("link", "drain", LEAF, "33-36"))
    assert [line.split(" is drained: ")[0] for line in out.splitlines()[:4]] == [f"{LEAF}[{n}]" for n in range(33, 37)]
    assert f"{CABLE} is drained already: nothing uses it\n" in ok(d.weft("link", "drain", LEAF + "[33,40]"))
    assert len(js(d.weft("link", "drain", LEAF + "[33-36]", "-o", "json"))["drains"]) == 4
    assert ok(d.weft("link", "undrain", LEAF, "*")).startswith(f"{LEAF}[*]: 5 undrained\n")
    r = d.weft("node", "drain", "role=spine")  # all of them: the others have nowhere to go
    assert r.rc == 1 and [line.split(" is drained: ")[0] for line in r.out.splitlines()[:4]] == [f"spine-0{n}" for n in range(1, 5)]
    ok(d.weft("node", "undrain", "spine-*"))
    assert js(d.weft("drain", "-o", "json")) == []


def test_no_other_way(d):
    leaf = "leaf-su01-rail1"
    r = d.weft("node", "drain", leaf, "--check")
    assert r.rc == 1 and "have no other way" in r.out
    r = d.weft("node", "drain", leaf)
    assert r.rc == 1 and "have no other way and still use it" in r.out
    assert "32 ends now hang on drained cables alone: pulling them cuts these off\n" in r.out
    assert "no other way: gpu-" in r.out and ", and 24 more\n" in r.out
    assert len(js(d.weft("drain", "-o", "json"))[0]["no_other_way"]) == 32
    assert "1 still in use" in d.weft("status").out
    assert "drained-in-use" in d.weft("finding").out
    ok(d.weft("node", "undrain", leaf))


def test_the_last_uplink(d):
    leaf = "leaf-su01-rail2"
    ok(d.weft("link", "drain", leaf, "33-63"))
    r = d.weft("link", "drain", leaf, "64")
    assert r.rc == 1 and f"31 drained before are in use again: {leaf}[33], {leaf}[34]" in r.out
    assert "32 ends now hang on drained cables alone" in r.out
    ok(d.weft("link", "undrain", leaf, "*"))


def test_over_a_restart():
    with Daemon(simulate="rail-64") as one:
        one.up()
        ok(one.weft("link", "drain", LEAF, "33", "--reason", "two\nlines"))
        one.stop()
        one.start()
        one.up()
        row = js(one.weft("drain", "-o", "json"))[0]
        assert (row["name"], row["state"], row["reason"]) == (CABLE, "drained", "two lines")


@pytest.mark.parametrize("words,why", [
    (("link", "drain", LEAF, "1"), "nothing else leads there"),
    (("link", "drain", LEAF), "which port?"),
    (("link", "drain", LEAF, "x"), "is no port number"),
    (("link", "drain", "nobody", "1"), "no node"),
    (("node", "drain", "gpu-0001 mlx5_0"), "is no switch"),
    (("node", "drain", "gpu-0001:0"), "is an adapter and cannot be drained"),
    (("node", "drain", CABLE), "is a port"),
    (("node", "undrain", "nobody"), "no node"),
    (("link", "drain", LEAF, "33", "34"), "too many words"),
])
def test_refused(d, words, why):
    r = d.weft(*words)
    assert r.rc == 2 and why in r.err, r
