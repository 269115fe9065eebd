# SPDX-License-Identifier: Apache-2.0
"""weft whatif: what is predicted is what happens; verdicts, additions, what makes no sense, too much of it."""
import json

import pytest

import rig
from weftlib import Daemon, js, need_programs, ok, rows, wait_for, weft

pytestmark = need_programs()
DUMPS = rig.SHARED / "fabrics/ibnetdiscover"


def ask(*what, rc=0, by=weft):
    return js(by("whatif", *what, "-o", "json"), rc)


def figures(quality):
    return {k: v for k, v in quality.items() if k != "seconds"}


def live_quality(d):
    return js(d.weft("route", "quality", "-o", "json"))["quality"]


def last_sweep(d, after):
    return wait_for(lambda: next((s for s in d.get("/fabrics/default/sweeps")["items"]
                                  if s["id"] > after and s["lft_blocks_set"] > 0), None), "a sweep that wrote")


def newest(d):
    return max(s["id"] for s in d.get("/fabrics/default/sweeps")["items"])


def check_told(predicted, d, before):
    """What was written, and what came of it, is what had been said."""
    changed, sweep = predicted["after"]["changed"], last_sweep(d, before)
    assert (sweep["lft_entries"], sweep["paths_moved"], sweep["lft_blocks_set"]) == (
        changed["entries"], changed["paths"], changed["mads"])
    assert figures(live_quality(d)) == figures(predicted["after"]["quality"])


def test_what_is_said_comes_true():
    with Daemon(simulate="rail-512") as daemon:
        d = daemon.up()
        for cable in ("leaf-su01-rail0[33]", "leaf-su02-rail5[47]"):
            predicted, before = ask("--fail", cable, by=d.weft), newest(d)
            assert predicted["verdict"] == "safe" and predicted["asked"]["failed_links"] == 1
            assert predicted["before"]["seconds"] is None  # they are in force
            ok(d.weft("sim", "link", "down", cable))
            check_told(predicted, d, before)
        assert figures(ask("--fail", "spine-01", by=d.weft)["before"]["quality"]) == figures(live_quality(d))

        # Both cables in again, in the words of an addition.
        free = [f"{node['name']}[{p['num']}]" for node in d.get("/fabrics/default/nodes?role=spine")["items"]
                for p in d.get(f"/fabrics/default/ports?node={node['name']}")["items"] if p["num"] and not p["peer"]]
        assert len(free) == 2, free
        r = ask("--add", f"link:leaf-su01-rail0[33]-{free[0]}", by=d.weft)
        assert r["verdict"] == "safe" and r["asked"]["added_links"] == 1 and r["accepted"]["verify"]["ok"]
        # Nothing was touched by any question.
        assert d.get("/fabrics/default")["links"] == 1024 - 2


def test_what_is_drained_stays_so():
    with Daemon(simulate="rail-512") as daemon:
        d = daemon.up()
        wanted = ask("--drain", "spine-03", by=d.weft)
        before = newest(d)
        ok(d.weft("node", "drain", "spine-03"))
        check_told(wanted, d, before)
        predicted, before = ask("--fail", "leaf-su01-rail0[33]", by=d.weft), newest(d)
        assert predicted["asked"]["drained_links"] == 0 and predicted["drained"]["own"] == 64
        ok(d.weft("sim", "link", "down", "leaf-su01-rail0[33]"))
        check_told(predicted, d, before)


def test_a_job_under_failures():
    with Daemon(simulate="rail-256") as daemon:
        d = daemon.up()
        hosts = "gpu-[0001-0032]"
        before = js(d.weft("route", "job", hosts, "-o", "json"))
        after = js(d.weft("route", "job", hosts, "--fail", "leaf-su01-rail0[40]", "-o", "json"))
        assert before["alltoall"]["worst"] == 1 > after["alltoall"]["worst"]
        ok(d.weft("sim", "link", "down", "leaf-su01-rail0[40]"))

        def moved():
            r = js(d.weft("route", "job", hosts, "-o", "json"))
            return r if r["alltoall"]["worst"] < 1 else None
        real = wait_for(moved, "the detour")
        for name in ("ring", "tree", "rail_alltoall", "alltoall"):
            assert real[name] == after[name], name
        r = d.weft("route", "job", hosts, "--fail", "nobody")
        assert r.rc == 2 and "nobody" in r.err


def test_verdicts():
    r = ask("--fail", "spine-01", "rail-512")
    assert r["verdict"] == "safe" and r["reach"]["ends_cut_off"] == 0 and r["after"]["verify"]["ok"]
    assert r["asked"]["failed_nodes"] == 1 and r["before"]["quality"]["alltoall"]["mean"] == 1
    assert r["after"]["quality"]["alltoall"]["mean"] < 1 and r["after"]["changed"]["mads"] > 0
    assert figures(r["ideal"]) == figures(r["before"]["quality"]) and r["accepted"] is None and r["drained"] is None

    r = ask("--fail", "leaf-su01-rail0", "rail-512", rc=1)
    reach = r["reach"]
    assert r["verdict"] == "cuts-off" and reach["ends_cut_off"] == reach["hosts_touched"] == 32
    assert reach["hosts_cut_off"] == 0 and reach["ends_before"] - reach["ends_after"] == 32
    assert len(reach["cut_off"]) == 20 and reach["cut_off"][0]["name"] == "gpu-0001 mlx5_0"
    assert reach["cut_off"][0]["was_on"] == "leaf-su01-rail0"
    assert reach["pairs_after"] == 480 * 479

    # All leaves of a unit: its hosts are gone altogether.
    r = ask("--fail", "su=0,role=leaf", "rail-512", rc=1)
    assert r["reach"]["hosts_cut_off"] == 32 and r["asked"]["failed_nodes"] == 8

    # What itself fails is not cut off.
    r = ask("--fail", "gpu-0001 *", "rail-512")
    assert r["verdict"] == "safe" and r["asked"]["failed_nodes"] == 8 and r["reach"]["ends_cut_off"] == 0
    assert "everybody else" in r["text"]


def test_words_are_told():
    out = ok(weft("whatif", "--fail", "spine-01", "rail-512")).splitlines()
    assert out[0].startswith("SAFE: everybody else stays reachable; mean bandwidth of same-rail shifts 1.000 -> ")
    assert out[1].startswith("rail-512: 1 node fails with ") and any("BEFORE" in x and "IDEAL" in x for x in out)
    out = ok(weft("whatif", "--fail", "leaf-su01-rail0", "rail-512"), 1).splitlines()
    assert out[0].startswith("NOT SAFE: cuts off 32 adapter ports of 32 hosts (0 wholly)")
    assert "gpu-0001 mlx5_0" in "".join(out) and "and 12 more" in "".join(out)
    values = {x["key"]: x["value"] for x in rows(ok(weft("whatif", "--fail", "spine-01", "rail-512", "-o", "csv")))}
    assert values["verdict"] == "safe" and float(values["before.quality.alltoall.mean"]) == 1
    assert int(values["after.changed.mads"]) > 0


def test_drained_cables_carry_only_what_must():
    r = ask("--drain", "spine-01", "rail-512")
    cut = ask("--fail", "spine-01", "rail-512")
    assert r["verdict"] == "safe" and r["asked"] == {**cut["asked"], "failed_nodes": 0, "failed_links": 0,
                                                     "drained_links": cut["asked"]["failed_links"]}
    assert r["drained"]["links"] == r["drained"]["spared"] + r["drained"]["own"] == cut["asked"]["failed_links"]
    for name in ("same_rail_shift", "slot_shift", "ring", "shift", "permutation"):
        assert r["after"]["quality"][name] == cut["after"]["quality"][name], name
    # All of a leaf's cables: there is no other way, so it stays reachable over them, as long as nobody pulls them.
    for what in ("leaf-su01-rail0", "leaf-su01-rail0[33-64]"):
        r = ask("--drain", what, "rail-512", rc=1)
        assert r["verdict"] == "drained-in-vain" and r["reach"]["ends_cut_off"] == 0
        assert r["drained"]["spared"] == 0 and r["drained"]["links"] == 32 and r["drained"]["ends_in_vain"] == 32
        assert len(r["drained"]["in_vain"]) == 20 and r["drained"]["in_vain"][0]["name"] == "gpu-0001 mlx5_0"
    out = ok(weft("whatif", "--drain", what, "rail-512"), 1)
    assert out.startswith("DRAINED IN VAIN: 32 ends have no other way; pulling these cables cuts them off")
    assert "  in vain   gpu-0001 mlx5_0, gpu-0002 mlx5_0, " in out and "and 12 more" in out
    r = ask("--drain", "leaf-su01-rail0[33-63]", "rail-512")  # one is left
    assert r["verdict"] == "safe" and r["drained"]["ends_in_vain"] == 0 and r["drained"]["in_vain"] == []
    r = ask("--drain", "leaf-su01-rail0[33-40]", "--fail", "spine-02", "rail-512")
    assert r["verdict"] == "safe" and r["asked"]["drained_links"] <= 8 and r["asked"]["failed_nodes"] == 1


def test_drained_in_vain_beside_failures_and_what_is_drained_already():
    r = ask("--drain", "leaf-su01-rail0", "--fail", "leaf-su01-rail1", "rail-512", rc=1)
    assert r["verdict"] == "cuts-off" and r["drained"]["ends_in_vain"] == 32
    assert "drained in vain: 32 ends" in r["text"]
    r = ask("--drain", "leaf-su01-rail0", "--fail", "leaf-su01-rail0", "rail-512", rc=1)  # it is dead
    assert r["drained"]["ends_in_vain"] == 0
    # A spine's own aggregation node goes with it.
    assert ask("--drain", "role=spine,name=*-01", "superpod-1")["drained"]["ends_in_vain"] == 0


def test_what_is_lost_counts():
    r = ask("--fail", "spine-*", "rail-256", rc=1)
    by = {x["pattern"]: x for x in r["bandwidth"]}
    alltoall = r["after"]["quality"]["alltoall"]
    assert alltoall["mean"] == 1 and by["alltoall"]["before"] == 1
    assert by["alltoall"]["failed"] == alltoall["failed"] == 57344
    assert by["alltoall"]["after"] == pytest.approx(1 - 57344 / 65280)
    # Random shifts reach hardly anybody: each flow counts once, not each shift.
    assert by["shift"]["after"] == pytest.approx(1 - by["shift"]["failed"] / (24 * 256))
    assert by["same_rail_shift"]["failed"] == 0 and by["same_rail_shift"]["after"] == 1
    assert "57,344 pairs no longer reach each other; " in r["text"] and "all-to-all 1.000 -> 0.122" in r["text"]

    # Ends without a leaf send nothing at all: theirs are missed too.
    r = ask("--fail", "rail=3", "rail-512", rc=1)
    by = {x["pattern"]: x for x in r["bandwidth"]}
    assert r["after"]["quality"]["alltoall"]["failed"] == 0 and by["alltoall"]["failed"] == 512 * 511 - 448 * 447
    assert by["ring"]["after"] == 7 / 8 and by["ring"]["failed"] == 64
    assert "FAILED" in ok(weft("whatif", "--fail", "rail=3", "rail-512"), 1)
    # Of hosts that themselves fail nobody misses any.
    r = ask("--fail", "gpu-0001 *", "rail-512")
    assert all(x["failed"] == 0 for x in r["bandwidth"]) and "pairs" not in r["text"]


def test_computed_anew_beside_repaired():
    r = js(weft("route", "compute", "rail-512", "--fail", "random:5:7", "-o", "json"))
    changed = ask("--fail", "random:5:7", "rail-512")["after"]["changed"]
    assert r["changed"] == {k: changed[k] for k in ("entries", "blocks", "switches", "paths")}
    assert r["changed"]["paths"] > 0


def test_singles():
    """Of a leaf with two cables left to one spine: that spine must not fail then."""
    with_two = [f"leaf-su01-rail0[{n}]" for n in range(33, 63)]
    r = ask(*[x for c in with_two for x in ("--fail", c)], "rail-512")
    assert r["verdict"] == "safe" and r["singles"]["before"] == 0
    kinds = {(s["kind"], s["ends"]) for s in r["singles"]["worst"]}
    assert r["singles"]["after"] in (0, 1) and all(k == ("switch", 32) for k in kinds)
    r = ask(*[x for c in with_two + ["leaf-su01-rail0[63]"] for x in ("--fail", c)], "rail-512")
    assert r["singles"]["after"] == 2 and {s["kind"] for s in r["singles"]["worst"]} == {"switch", "link"}
    assert all(s["ends"] == 32 for s in r["singles"]["worst"])
    assert "leaf-su01-rail0" in ok(weft("whatif", *[x for c in with_two + ["leaf-su01-rail0[63]"]
                                                    for x in ("--fail", c)], "rail-512")).split("then")[1]


def test_additions():
    r = ask("--add", "node-like:gpu-0001=gpu-0017", "rail-128")
    assert r["verdict"] == "safe" and (r["asked"]["added_nodes"], r["asked"]["added_links"]) == (8, 8)
    assert r["reach"]["ends_after"] == 136 and r["accepted"]["verify"]["ok"] and r["after"]["verify"]["ok"]
    assert r["after"]["quality"]["hosts"] == r["accepted"]["quality"]["hosts"] == 136
    # Plugged in, nobody else moves; accepted, all may.
    assert r["after"]["changed"]["entries"] <= r["accepted"]["changed"]["entries"]
    assert "accepted" in r["text"]

    r = ask("--add", "su", "rail-768")
    assert r["asked"]["added_nodes"] == 32 * 8 + 8 and r["reach"]["ends_after"] == 1024
    assert r["accepted"]["quality"]["units"] == 4 and r["accepted"]["verify"]["ok"]

    r = weft("whatif", "--add", "su", "rail-1024")
    assert r.rc == 1 and "spine-01 has 0 free ports of 16 needed" in r.err and "and 11 more" in r.err
    r = weft("whatif", "--add", "node-like:gpu-0001=gpu-0033", "rail-256")
    assert r.rc == 1 and "there is no room: " in r.err and r.out == ""

    # A leaf alone, and with adapters like those on its like.
    r = ask("--add", "node-like:leaf-su01-rail0=leaf-x", "rail-768")
    assert (r["asked"]["added_nodes"], r["asked"]["ends_not_added"]) == (1, 32) and r["reach"]["ends_after"] == 768
    assert "WITHOUT the 32 adapters" in ok(weft("whatif", "--add", "node-like:leaf-su01-rail0=leaf-x", "rail-768"))
    r = ask("--add", "node-like-hosts:leaf-su01-rail0=leaf-x", "rail-768")
    assert (r["asked"]["added_nodes"], r["asked"]["ends_not_added"]) == (33, 0) and r["reach"]["ends_after"] == 800
    assert r["accepted"]["verify"]["ok"] and r["after"]["quality"]["hosts"] == 800

    r = weft("whatif", "--add", "link:leaf-su01-rail0[33]-spine-02[1]", "rail-512")
    assert r.rc == 2 and "has a cable to spine-" in r.err
    # A cable that is moved: out there, in here.
    r = ask("--fail", "leaf-su01-rail0[1]", "--fail", "leaf-su01-rail1[1]", "--add",
            "link:leaf-su01-rail0[1]-leaf-su01-rail1[1]", "rail-512", rc=1)
    assert r["reach"]["ends_cut_off"] == 2 and r["asked"]["added_links"] == 1


NONSENSE = [
    ((), "what if what"), (("--fail", "nobody"), "nobody"), (("--fail", "leaf-su01-rail0[200]"), "no port 200"),
    (("--fail", "leaf-su01-rail0[0]"), "no link"), (("--fail", "nope-*"), "no node has such a name"),
    (("--fail", "rail=99"), "no switch is so"), (("--fail", "colour=red"), "no field"),
    (("--fail", "role=king"), "no value of role"), (("--fail", "rail=x"), "no value of rail"),
    (("--fail", "rail="), "no value of rail"), (("--fail", "random:200:1"), "random:<percent>"),
    (("--drain", "random:1"), "random:<percent>"), (("--fail", "leaf-su01-*[200]"), "none of these ports"),
    (("--add", "ferry"), "link:A[PORT]"), (("--add", "link:spine-01[1]"), "link:A[PORT]"),
    (("--add", "link:spine-01[1]-spine-01[2]"), "itself"), (("--add", "link:spine-01[0]-spine-02[1]"), "no number"),
    (("--add", "link:spine-01[200]-spine-02[1]"), "no port 200"), (("--add", "node-like:spine-01"), "NEWNAME"),
    (("--add", "node-like-hosts:spine-01"), "NEWNAME"), (("--add", "su:7"), "su:0"), (("--add", "su:x"), "su:0"),
    (("--add", "link:a[1]-b[1]"), "no node"), (("--fail", ""), "no node"),
]


@pytest.mark.parametrize("what,said", NONSENSE, ids=[" ".join(x[0]) or "nothing" for x in NONSENSE])
def test_nonsense(what, said):
    r = weft("whatif", *what, "rail-256")
    assert r.rc == 2 and said in r.err and r.out == "", r


def test_of_a_running_fabric_without_engine():
    with Daemon(simulate="rail-64") as daemon:
        d = daemon.up()
        assert d.weft("whatif", "--fail", "spine-01", "--engine", "updn").rc == 2
        status, answer = d.request("POST", "/fabrics/default/whatif", {"fail": ["spine-01"], "engine": "updn"})
        assert status == 409 and "in force" in answer["detail"], answer
        status, answer = d.request("POST", "/fabrics/default/whatif", {})
        assert status == 400 and "nothing is asked" in answer["detail"], answer
    r = ask("--fail", "spine-01", "--engine", "updn", "rail-64")
    assert r["before"]["engine"] == "updn"


def outcome(d, body, path="whatif"):
    status, job = d.request("POST", f"/fabrics/default/{path}", body)
    if status != 202:
        return status, job

    def ended():
        j = d.get(f"/jobs/{job['id']}")
        return j if j["state"] != "running" else None
    job = wait_for(ended, "the job")
    assert job["kind"] == ("whatif" if path == "whatif" else "job-quality")
    return status, job


def test_too_much():
    with Daemon(simulate="rail-256") as daemon:
        d = daemon.up()
        # Ten thousand cables: all trunks there are, again and again.
        many = [f"leaf-su01-rail{i % 8}[{33 + i // 8 % 32}]" for i in range(10000)]
        status, job = outcome(d, {"fail": many})
        assert status == 202 and job["state"] == "done" and job["result"]["verdict"] == "cuts-off", job
        assert job["result"]["asked"]["failed_links"] == 256
        status, answer = outcome(d, {"fail": many + ["spine-01"]})
        assert status == 400 and "at most 10000" in answer["detail"]
        status, job = outcome(d, {"fail": ["leaf-*"] * 1001})
        assert status == 202 and job["state"] == "failed" and "more than 1000" in job["error"]["text"]
        try:
            status, answer = outcome(d, {"fail": ["x" * (3 << 20)]})
            assert status == 413, answer
        except BrokenPipeError:  # refused before all of it was sent
            pass
        status, job = outcome(d, {"fail": ["x" * (1 << 20)]})
        assert status == 202 and job["state"] == "failed", job
        status, job = outcome(d, {"fail": ["\u0000", "[[[[", "a]b[1]", "=", ",=,", "*" * 5000]})
        assert status in (202, 400), job
        # As many hosts as a job may have, by names of some length.
        names = [f"gpu-{i % 32 + 1:04}" for i in range(20000)]
        status, job = outcome(d, {"hosts": names, "fail": ["spine-01"]}, "job-quality")
        assert status == 202 and job["state"] == "done" and job["result"]["adapters"] == 256
        assert d.get("/fabrics/default")["state"] == "up"


@pytest.mark.skipif(not DUMPS.exists(), reason=f"{DUMPS} is not here")
def test_saved_fabrics():
    done = 0
    for path in sorted(DUMPS.glob("*.txt")):
        r = weft("whatif", "--fail", "random:5:1", path, "-o", "json")
        if r.rc not in (0, 1) or r.out == "":
            assert r.err != "", path  # no fabric at all
            continue
        a = json.loads(r.out)
        assert (r.rc == 0) == (a["verdict"] == "safe") and a["verdict"] != "not-proved", (path, a["text"])
        assert a["reach"]["ends_after"] <= a["reach"]["ends_before"]
        assert a["after"]["verify"]["unreached"] == 0, path
        done += 1
    assert done >= 8


def test_the_managers_own_port():
    with Daemon(simulate="rail-64") as daemon:
        d = daemon.up()
        for element in ("gpu-0001 mlx5_0", "gpu-0001 mlx5_0[1]", "leaf-su01-rail0"):
            r = d.weft("whatif", "--fail", element)
            assert r.rc == 1 and "weft loses its own port" in r.out, r
        assert "weft loses" not in d.weft("whatif", "--fail", "gpu-0002 mlx5_0").out
