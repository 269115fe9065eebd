# SPDX-License-Identifier: Apache-2.0
"""weft route quality and route job, of a running fabric through its changes and of fabrics by name."""
import random

from weftlib import Daemon, js, need_programs, ok, rows, wait_for, weft

pytestmark = need_programs()
FLOWS = ("same_rail_shift", "slot_shift", "ring", "shift", "permutation")


def quality(d):
    return js(d.weft("route", "quality", "-o", "json"))


def test_of_a_running_fabric():
    with Daemon(simulate="rail-512") as daemon:
        d = daemon.up()
        r = quality(d)
        assert r["state"] == "ready" and r["engine"] and r["last"] is None
        for name in FLOWS[:4]:
            assert (r["quality"][name]["max_load"], r["quality"][name]["mean"]) == (1, 1), name
            assert r["quality"][name]["link"] is None
        assert r["quality"]["alltoall"]["max_over_mean"] < 1.01 and r["quality"]["alltoall"]["flows"] == 512 * 511
        assert r["quality"]["permutation"]["link"]["load"] == r["quality"]["permutation"]["max_load"] > 1
        assert strip(r["ideal"]) == strip(r["quality"])

        ok(d.weft("sim", "link", "down", "leaf-su01-rail0[40]"))

        def moved():
            q = quality(d)
            return q if q["quality"]["alltoall"]["worst"] < 1 else None
        after = wait_for(moved, "other figures")
        assert strip(after["ideal"]) == strip(r["quality"]) == strip(after["last"])
        link = after["quality"]["alltoall"]["link"]
        assert link["name"] == "leaf-su01-rail0" or link["to"] == "leaf-su01-rail0"

        table = ok(d.weft("route", "quality")).splitlines()
        assert "512 adapters, 8 rails" in table[0] and "IDEAL" in table[1] and "BEFORE" in table[1]
        assert len(table) == 2 + 6
        assert d.weft("route", "quality", "--fail", "random:1:1").rc == 2


def strip(q):
    return {k: v for k, v in q.items() if k != "seconds"}


def test_of_a_fabric_by_name():
    r = js(weft("route", "quality", "rail-64", "-o", "json"))
    assert "one scalable unit" in r["quality"]["ring"]["absent"] and r["quality"]["ring"]["mean"] is None
    assert r["quality_before"] is None and r["quality"]["units"] == 1
    out = ok(weft("route", "quality", "ft3-8-4", "--fail", "random:10:1"))
    assert "BEFORE" in out and "IDEAL" not in out
    patterns = rows(ok(weft("route", "quality", "ft3-8-4", "-o", "csv")))
    assert [x["pattern"] for x in patterns] == ["same_rail_shift", "slot_shift", "ring", "alltoall", "shift", "permutation"]
    assert float(patterns[0]["mean"]) == 1 and patterns[0]["max_load"] == "1"


def test_in_route_compute():
    r = js(weft("route", "compute", "ft3-8-4", "--fail", "random:10:1", "-o", "json"))
    for name in FLOWS:
        assert 0 < r["quality"][name]["worst"] <= r["quality"][name]["mean"] <= r["quality_before"][name]["mean"] <= 1
    assert r["quality"]["alltoall"]["max_over_mean"] > r["quality_before"]["alltoall"]["max_over_mean"]
    out = ok(weft("route", "compute", "rail-64"))
    assert "same_rail_shift  mean 1  worst 1  max load 1" in out and "ring  absent: the hosts are one" in out


def job(hosts, *what, **more):
    return js(weft("route", "job", hosts, *what, "-o", "json", **more))


def test_a_job(tmp_path):
    near = job("gpu-[0001-0128]", "rail-1024")
    assert (near["hosts"], near["adapters"], near["rails"]) == (128, 1024, 8)
    assert near["ring"]["flows"] == 1024 and near["ring"]["mean"] == 1 and near["ring"]["links"] == []
    assert near["alltoall"]["flows"] == 1024 * 1023 and near["tree"]["flows"] == 8 * 4 * 127
    # Ranks in any order meet on the way to the spines; all-to-all has no order.
    mixed = [f"gpu-{i + 1:04}" for i in random.Random(1).sample(range(128), 128)]
    (tmp_path / "hosts").write_text("\n".join(mixed))
    far = job(f"@{tmp_path}/hosts", "rail-1024")
    assert far == {**job(",".join(mixed), "rail-1024"), "seconds": far["seconds"]}
    assert far["ring"]["mean"] < 1 and far["ring"]["blamed"] >= len(far["ring"]["links"]) > 0
    assert far["ring"]["links"][0]["load"] == far["ring"]["max_load"] > 1
    assert strip(far["alltoall"]) == strip(near["alltoall"])
    out = ok(weft("route", "job", ",".join(mixed), "rail-1024"))
    assert "HELD BACK BY" in out and far["ring"]["links"][0]["name"] in out
    two = job("gpu-[0001-0002] gpu-0001", "rail-64")
    assert two["adapters"] == 16 and two["hosts"] == 3


def test_a_job_of_nobody(tmp_path):
    for hosts, said in (("nobody", "nobody"), ("gpu-[5-1]", "5-1"), ("gpu-[x]", "x"), (",", "no host"),
                        (f"@{tmp_path}/none", "none"), ("gpu-[0-99999999]", "more than"), ("spine-01", "no host")):
        r = weft("route", "job", hosts, "rail-64")
        assert r.rc == 2 and said in r.err and r.out == "", r
    r = weft("route", "job", "gpu-0001")
    assert r.rc == 3, r


def test_a_job_on_a_running_fabric():
    with Daemon(simulate="rail-256") as daemon:
        d = daemon.up()
        r = js(d.weft("route", "job", "gpu-[0001-0032]", "-o", "json"))
        assert r["adapters"] == 256 and r["engine"] and r["alltoall"]["worst"] == 1
        ok(d.weft("sim", "link", "down", "leaf-su01-rail0[40]"))

        def held_back():
            a = js(d.weft("route", "job", "gpu-[0001-0032]", "-o", "json"))["alltoall"]
            return a if a["worst"] < 1 else None
        links = wait_for(held_back, "a fuller cable")["links"]
        assert links and all("leaf-su01-rail0" in (x["name"], x["to"]) for x in links)


def test_a_file_that_is_not_there():
    r = weft("route", "quality", "/nonexistent.topo")
    assert r.rc == weft("route", "compute", "/nonexistent.topo").rc != 0 and "/nonexistent.topo" in r.err


def test_a_job_on_uneven_rails_blames_nobody_where_nothing_is_held_back():
    r = js(weft("route", "job", "gpu-[0001-0032]", "ft3-16-4", "--fail", "leaf-p01-01[1]", "-o", "json"))
    assert r["adapters"] == 255  # one rail is smaller than the others
    for name in ("rail_alltoall", "alltoall"):
        assert r[name]["worst"] == 1 and r[name]["blamed"] == 0 and r[name]["links"] == [], name
