# SPDX-License-Identifier: Apache-2.0
"""weft sim: every verb on a real weftd, words and options as people type them, refusals in words."""
import os
import re

import pytest

from weftlib import Daemon, js, need_programs, ok, wait_for

pytestmark = need_programs()
LEAF = "leaf-su01-rail0"


@pytest.fixture(scope="module")
def d():
    with Daemon(simulate="rail-64") as daemon:
        yield daemon.up()


# In an order that leaves the fabric usable.
VERBS = [
    (("link", "down", LEAF, "2"), f"{LEAF}[2] lost its cable"),
    (("link", "up", f"{LEAF}[2]"), f"{LEAF}[2] has its cable again"),
    (("link", "flap", f"{LEAF}[2]", "--times", "5", "--gap", "10ms"), f"{LEAF}[2] loses its cable 5 times, for 0.01 s each, 0.01 s apart"),
    (("link", "flap", f"{LEAF}[2]", "--for=0.1s"), f"{LEAF}[2] loses its cable for 0.1 s"),
    (("link", "enable", f"{LEAF}[3]", "--speed", "EDR", "--width", "1x"), f"{LEAF}[3] enables 1x EDR only, from its next training on"),
    (("cable", "swap", f"{LEAF}[4]", f"{LEAF}[5]"), f"the cables at {LEAF}[4] and {LEAF}[5] have exchanged their far ends"),
    (("cable", "swap", f"{LEAF}[4]", f"{LEAF}[5]"), f"the cables at {LEAF}[4] and {LEAF}[5] have exchanged their far ends"),
    (("cable", "move", "gpu-0006:0", f"{LEAF}[20]"), f"the cable at gpu-0006 mlx5_0[1] leads to {LEAF}[20] now"),
    (("cable", "move", "gpu-0006:0", f"{LEAF}[6]"), f"the cable at gpu-0006 mlx5_0[1] leads to {LEAF}[6] now"),
    (("node", "kill", "gpu-0002:1"), "gpu-0002 mlx5_1 does not answer any more"),
    (("node", "revive", "gpu-0002:1"), "gpu-0002 mlx5_1 answers again"),
    (("node", "reboot", "gpu-0002 mlx5_1", "--for", "10ms", "--mute", "20ms"), "gpu-0002 mlx5_1 reboots"),
    (("node", "slow", "spine-02", "3"), "spine-02 takes 3 times as long as before"),
    (("node", "slow", "spine-02", "--for", "1ms"), "spine-02 takes 0.001 s more for each request"),
    (("node", "slow", "spine-02", "1", "--for", "0"), "spine-02 is as fast as the others"),
    (("node", "name", "spine-02", "spine two"), 'spine-02 says it is "spine two"'),
    (("switch", "reboot", "spine-01"), "spine-01 reboots"),
    (("host", "reboot", "gpu-0002 mlx5_2", "booting", "--for", "50ms", "--orderly"), "the computer around gpu-0002 mlx5_2 boots for 0.05 s, its link stays up"),
    (("adapter", "replace", "gpu-0002 mlx5_3", "0x0002c90300abcdef", "--for", "10ms"), "gpu-0002 mlx5_3 is another device now: 0x0002c90300abcdef"),
    (("guid", "duplicate", "gpu-0002 mlx5_4", "gpu-0002 mlx5_5"), "gpu-0002 mlx5_4 reboots and shows the GUIDs of gpu-0002 mlx5_5"),
    (("guid", "restore", "gpu-0002 mlx5_4"), "gpu-0002 mlx5_4 reboots and shows its own GUIDs again"),
    (("guid", "system", "gpu-0002 mlx5_4", "0x77"), "gpu-0002 mlx5_4 has the SystemImageGUID 0x0000000000000077"),
    (("key", "set", "gpu-0002 mlx5_6", "0x1234", "--protect", "1", "--lease", "60"), "gpu-0002 mlx5_6[1] has an M_Key that its manager does not know"),
    (("key", "clear", "gpu-0002 mlx5_6"), "gpu-0002 mlx5_6[1] has no M_Key any more"),
    (("trap", "raise", f"{LEAF}[3]", "129"), f"{LEAF}[3] sends trap 129"),
    (("trap", "raise", LEAF, "128"), f"{LEAF}[0] sends trap 128"),
    (("trap", "lose", LEAF, "2"), f"the next 2 traps of {LEAF} are lost"),
    (("trap", "lose", LEAF), f"all traps of {LEAF} are lost"),
    (("trap", "lose", LEAF, "0"), f"traps of {LEAF} arrive again"),
    (("trap", "loss", "50%"), "50 % of all traps are lost"),
    (("trap", "loss", "0"), "no traps are lost"),
    (("set", "ignore", LEAF, "LinearForwardingTable"), f"{LEAF} answers Set(LinearForwardingTable) with success and keeps nothing"),
    (("set", "keep", LEAF, "LinearForwardingTable"), f"{LEAF} keeps Set(LinearForwardingTable) again"),
    (("set", "ignore", LEAF, "life_time_value"), f"{LEAF} answers Set(life_time_value) with success and keeps nothing"),
    (("set", "keep", LEAF, "life_time_value"), f"{LEAF} keeps Set(life_time_value) again"),
    (("sm", "add", "gpu-0008 mlx5_7", "--priority", "3", "--state=standby", "--sm-key", "1", "--poll", "2s", "--misses", "9"),
     "a subnet manager runs at gpu-0008 mlx5_7[1]: standby, priority 3"),
    (("sm", "set", "gpu-0008 mlx5_7", "--frozen", "--silent=no", "--quiet"), "the subnet manager at gpu-0008 mlx5_7[1]: standby, priority 3, frozen"),
    (("sm", "control", "gpu-0008 mlx5_7", "acknowledge", "1"), "the subnet manager at gpu-0008 mlx5_7[1] sends acknowledge to LID 1"),
    (("sm", "remove", "gpu-0008 mlx5_7"), "the subnet manager at gpu-0008 mlx5_7[1] is gone"),
    (("hosts", "on", "--spread", "10ms", "--paths", "0.5"), "every adapter is a Linux host with IPoIB"),
    (("hosts", "off"), "the hosts ask for nothing any more"),
    (("traffic", "ring", "--load", "80%", "--hosts", "gpu-[0001-0004]"), "traffic 1: ring, 32 senders, 32 flows"),
    (("traffic", "incast", "--receivers", "gpu-0005:0", "--hosts", "gpu-000[1-3]", "--as", "jam", "--window", "32", "--level", "0", "--seed", "1"),
     "traffic 2: jam, 24 senders, 24 flows"),
    (("traffic", "storage", "--receivers=gpu-0008:0", "--hosts=gpu-0007", "--fan", "1", "--on", "2s", "--off", "1s"), "traffic 3: storage, 8 senders, 8 flows, in bursts"),
    (("traffic", "shift", "--shift", "2"), "traffic 4: shift, 64 senders, 64 flows"),
    (("traffic", "stop", "2"), "traffic 2 has ended"),
    (("traffic", "stop"), "all traffic has ended"),
    (("receiver", "gpu-0003:3", "--takes", "20%"), "the host at gpu-0003 mlx5_3[1] takes 20 % of what its link carries"),
    (("receiver", "gpu-0003:3", "--takes", "1"), "the host at gpu-0003 mlx5_3[1] takes all that arrives"),
    (("errors", f"{LEAF}[3]", "--symbol", "3/min", "--recovery=2", "--receive", "1/s", "--remote=1/d", "--integrity", "0", "--overrun", "0", "--discard", "0", "--vl15", "0"),
     f"{LEAF}[3] receives with 180 symbol errors an hour, 2 recoveries an hour, 3600 receive errors an hour, 0.0416667 remote physical errors an hour, "
     "0 integrity errors an hour, 0 buffer overruns an hour, 0 discards an hour, 0 dropped management packets an hour"),
    (("errors", f"{LEAF}[3]", "--ber", "1e-13", "--raw-ber", "1e-8", "--uncorrectable", "1/h"),
     f"{LEAF}[3] receives with 1 uncorrectable blocks an hour, a bit error ratio of 1e-13, a bit error ratio before correction of 1e-08"),
    (("errors", f"{LEAF}[3]", "--symbol", "0", "--recovery", "0", "--receive=0", "--remote=0"),
     f"{LEAF}[3] receives with 0 symbol errors an hour, 0 recoveries an hour, 0 receive errors an hour, 0 remote physical errors an hour"),
    (("module", f"{LEAF}[3]", "--celsius", "82.5", "--rx", "-12.5", "--tx=1", "--fault"),
     f"the module at {LEAF}[3] measures 82.5 C, -12.5 dBm received and 1 dBm sent on its second lane, and says that it has failed"),
    (("module", "gpu-0002:1"), "the module at gpu-0002 mlx5_1[1] measures 45 C, 0 dBm received and 0 dBm sent on its second lane"),
    (("device", "spine-03", "--celsius", "91", "--fans", "2", "--supplies", "1"), "spine-03 measures 91 C, 2 failed fans, 1 failed power supplies"),
    (("device", "spine-03"), "spine-03 measures 50 C, 0 failed fans, 0 failed power supplies"),
    (("loss", "1%"), "1 % of all datagrams are lost, at every device"),
    (("loss", "0"), "no datagrams are lost"),
]


def test_verbs(d):
    for command, said in VERBS:
        assert ok(d.weft("sim", *command)) == said + "\n", command
        last = d.get("/events?newest=1&limit=1&kind=operator-action")["items"][0]
        assert last["text"].endswith(f"simulator: {said}")
    assert js(d.weft("sim", "loss", "0", "-o", "json")) == {"ok": True, "text": "no datagrams are lost"}


def test_every_verb_is_reached(d):
    """Nothing that the API can do is missing from the command."""
    source = {v["verb"] for v in d.get("/fabrics/default/sim/actions")["items"]}
    words = {"-".join(c[:2]) for c, _ in VERBS} | {"loss"}
    one_word = {"loss", "receiver", "errors", "module", "device"}
    alias = {f"traffic-{p}": "traffic-start" for p in ("ring", "incast", "storage", "shift")}
    alias |= {"key-set": "m-key", "key-clear": "m-key", "guid-system": "system-guid"}
    assert source == {alias.get(w, w) for w in words if w.split("-")[0] not in one_word} | one_word


@pytest.mark.parametrize("command,rc,said", [
    (("link", "down", f"{LEAF}[20]"), 2, "no cable"),
    (("link", "down", LEAF), 2, "say which port"),
    (("link", "down", LEAF, "x"), 2, "not a port number"),
    (("link", "down", LEAF, "3", "4"), 2, "too many words"),
    (("link", "flap", f"{LEAF}[3]", "--gap", "soon"), 2, "not a time"),
    (("link", "flap", f"{LEAF}[3]", "--times", "0"), 2, "times"),
    (("link", "enable", f"{LEAF}[3]"), 2, "which width or speed"),
    (("link", "down", f"{LEAF}[3]", "--times", "2"), 2, 'takes no "times"'),
    (("link", "down", "nobody[3]"), 2, "nobody"),
    (("link", "down", f"{LEAF}[3]", "--speed", "warp"), 2, "SDR DDR"),
    (("cable", "swap", f"{LEAF}[3]"), 2, "missing"),
    (("node", "slow", LEAF), 2, "how slow"),
    (("switch", "reboot", "gpu-0001 mlx5_0"), 2, "no switch"),
    (("host", "reboot", LEAF), 2, "switch-reboot"),
    (("adapter", "replace", "gpu-0002 mlx5_5", "0x77x"), 2, "hexadecimal"),
    (("key", "set", f"{LEAF}[3]", "1"), 2, "port 0"),
    (("trap", "raise", "gpu-0001 mlx5_1", "128"), 2, "144, 145"),
    (("trap", "raise", LEAF), 2, "something is missing"),
    (("set", "ignore", LEAF, "Nonsense"), 2, "LinearForwardingTable"),
    (("sm", "remove", "gpu-0001 mlx5_1"), 2, "sm-add"),
    (("sm", "add", "gpu-0001 mlx5_1", "--silent=perhaps"), 2, "yes no"),
    (("loss", "2"), 2, "not a share"),
    (("traffic", "jam"), 2, "all-to-all"),
    (("traffic", "ring", "--load", "much"), 2, "not a share"),
    (("traffic", "ring", "--hosts", "gpu-9999"), 2, "names no adapter"),
    (("traffic", "stop", "77"), 2, "traffic list"),
    (("traffic", "list", "3"), 2, "too many words"),
    (("receiver", "gpu-0003:3"), 2, '"share"'),
    (("receiver", f"{LEAF}[3]", "--takes", "0"), 2, "switch"),
    (("errors", f"{LEAF}[3]", "--symbol", "often"), 2, "not a rate"),
    (("errors", f"{LEAF}[3]"), 2, "which errors"),
    (("errors", LEAF, "--symbol", "1"), 2, "say which port"),
    (("frobnicate",), 2, '"sim link"'),
])
def test_refusals(d, command, rc, said):
    r = d.weft("sim", *command)
    assert (r.rc, r.out) == (rc, ""), r
    assert r.err.startswith("weft: ") and r.err.count("\n") == 1 and said in r.err and "/api/v1" not in r.err


def test_show(d):
    ok(d.weft("sim", "sm", "add", "gpu-0007 mlx5_7", "--priority", "1"))
    out = ok(d.weft("sim", "show"))
    assert re.search(r"^mads +[\d,]+$", out, re.M)
    assert re.search(r"^gpu-0007 mlx5_7 .* standby +1 ", out, re.M)
    assert js(d.weft("sim", "show", "-o", "json"))["managers"][0]["priority"] == 1
    # The manager hears of it and says so.
    seen = r"^  other SM standby, priority 1: ranks below weft \(8\), gpu-0007 mlx5_7\[1\], LID \d+, 0x[0-9a-f]{16}, heard \d+ s ago$"
    wait_for(lambda: re.search(seen, d.weft("status").out, re.M), "other SM")
    ok(d.weft("sim", "sm", "remove", "gpu-0007 mlx5_7"))
    wait_for(lambda: "other SM" not in d.weft("status").out, "other SM gone")
    assert js(d.weft("sim", "show", "-o", "json"))["managers"] == []


def test_traffic(d):
    """What goes on is listed, and what ports wait for is named."""
    ok(d.weft("sim", "traffic", "incast", "--hosts", "gpu-[0002-0004]", "--receivers", "gpu-0001:0"))
    name = rf"^{LEAF} +\d+ +incast +\d+ "
    wait_for(lambda: re.search(name, ok(d.weft("sim", "traffic", "list")), re.M), "what waits")
    out = ok(d.weft("sim", "traffic", "list"))
    assert re.search(r"^ *\d+ +incast +incast +yes +24 +1 +24 +0 +[\d.]+ [GT]b/s +(19\d|20\d) Gb/s", out, re.M), out
    assert js(d.weft("sim", "traffic", "list", "-o", "json"))[0]["flows"] == 24
    assert re.search(name, ok(d.weft("sim", "show")), re.M)
    ok(d.weft("sim", "traffic", "stop"))
    assert js(d.weft("sim", "traffic", "list", "-o", "json")) == []


def test_play(d, tmp_path):
    """Commands from a file, in order and at their times; what is wrong with it is said before anything is done."""
    f = tmp_path / "day"
    f.write_text("# a day\n\n0 traffic ring --load 50% --as 'all reduce' # begins\n+10ms traffic list\n0.1s traffic stop\n")
    out = ok(d.weft("sim", "play", str(f)))
    assert re.match(r"00:00:00  traffic \d+: all reduce, 64 senders, 64 flows\n00:00:00\n *ID +TRAFFIC", out), out
    assert out.endswith("00:00:00  all traffic has ended\n"), out
    assert ok(d.weft("sim", "play", str(f), "--check")) == "3 lines, 0.1 s\n"
    for text, said in (("soon traffic stop\n", f'{f}:1: "soon" is not a time'), ("1s link\n", f"{f}:1: "), ("2s traffic stop\n1s traffic stop\n", f"{f}:2: it comes before"),
                       ("1s status\n", f"{f}:1: "), ("1s play x\n", "nothing that is done"), ("# nothing\n", "nothing in it")):
        f.write_text(text)
        r = d.weft("sim", "play", str(f))
        assert r.rc == 2 and r.out == "" and said in r.err, r
    f.write_text("0 traffic stop 999\n0 traffic ring\n")
    r = d.weft("sim", "play", str(f))
    assert r.rc == 2 and "no traffic 999" in r.err and f"{f}:1: ended here" in r.err, r
    assert js(d.weft("sim", "traffic", "list", "-o", "json")) == []
    assert "No such file" in d.weft("sim", "play", str(tmp_path / "none")).err
    ok(d.weft("sim", "play", "--check", os.path.join(os.path.dirname(__file__), "../../etc/sim/bad-day.txt")))


def test_not_simulated(tmp_path):
    """A real fabric is left alone, with the reason."""
    with Daemon(args=("--port", "none_0/1")) as daemon:
        for command in (("link", "down", LEAF, "2"), ("hosts", "on"), ("show",)):
            r = daemon.weft("sim", *command)
            assert r.rc == 2 and "not simulated" in r.err and "hands in the machine room" in r.err, r


def test_groups_and_watch():
    """Hosts join; the groups and their members are shown, and the status counts requests and traps."""
    with Daemon(simulate="rail-64") as daemon:
        daemon.up()
        assert "  SA " not in ok(daemon.weft("status"))
        ok(daemon.weft("sim", "hosts", "on"))
        wait_for(lambda: daemon.get("/fabrics/default/sim")["hosts"]["joined"] == 64, "all hosts to join")
        groups = js(daemon.weft("group", "-o", "json"))
        assert [g["members"] for g in groups if g["mgid"] == "ff12:401b:ffff::ffff:ffff"] == [64]
        assert "0xc0" in ok(daemon.weft("group"))
        one = js(daemon.weft("group", "ff12:401b:ffff::ffff:ffff", "-o", "json"))
        assert len(one["member"]) == one["members"] == 64
        assert re.search(r"^0x[0-9a-f]{16}  gpu-0001 mlx5_0 ", ok(daemon.weft("group", "ff12:401b:ffff::ffff:ffff")), re.M)
        r = daemon.weft("group", "nonsense")
        assert r.rc == 2 and "IPv6" in r.err
        ok(daemon.weft("sim", "trap", "raise", "gpu-0002 mlx5_1", "129"))
        wait_for(lambda: daemon.get("/fabrics/default")["traps"]["received"] > 0, "the trap")
        out = ok(daemon.weft("status"))
        assert re.search(r"^  watch    \d+ light sweeps?, \d+ traps? \(.*129: \d+", out, re.M)
        assert re.search(r"^  SA       \d+ groups, \d+ members; \d+ requests", out, re.M)


def test_flap_is_seen():
    """A link that flaps goes and comes back, and the last change says so."""
    with Daemon(simulate="rail-64") as daemon:
        daemon.up()
        links = daemon.get("/fabrics/default")["links"]
        ok(daemon.weft("sim", "link", "flap", f"{LEAF}[7]", "--for", "3s"))
        wait_for(lambda: daemon.get("/fabrics/default")["links"] == links - 1, "the link to go")
        assert "gpu-0007 mlx5_0" in daemon.get("/fabrics/default")["last_change"]["text"]
        wait_for(lambda: daemon.get("/fabrics/default")["links"] == links, "the link to return")
