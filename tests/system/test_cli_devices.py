# SPDX-License-Identifier: Apache-2.0
"""What ibdiagnet has seen of modules and devices, from its files to the screen: weft health, weft counters, alarms, the API, /metrics."""
import datetime
import json
import os
import time

import pytest

from weftlib import Daemon, UnixConnection, js, need_programs, ok, rows, wait_for

pytestmark = need_programs()
SPINE, LEAF = "spine-01", "leaf-su01-rail0"


class Files:
    """ibdiagnet's folder, written anew as a run of it would."""

    def __init__(self, folder):
        self.folder = folder
        self.guid = {}
        self.dim, self.fan, self.dc = 1, 8000, "OK"

    def put(self, name, text, age=2):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.utime(path + ".new", (time.time() - age,) * 2)
        os.rename(path + ".new", path)

    def write(self, age=2):
        spine, leaf, hca = self.guid[SPINE], self.guid[LEAF], self.guid["gpu-0003 mlx5_0"]
        self.put("ibdiagnet2.db_csv",
                 f"START_TEMP_SENSING\nNodeGUID,CurrentTemperature\n{spine},55\n{hca},61\nEND_TEMP_SENSING\n"
                 f"START_FANS_SPEED\nNodeGuid,SensorIndex,FanSpeed\n{spine},1,8000\n{spine},2,{self.fan}\nEND_FANS_SPEED\n"
                 f"START_POWER_SUPPLIES\nNodeGuid,PSUIndex,IsPresent,DCState\n{leaf},1,Yes,OK\n{leaf},2,Yes,{self.dc}\nEND_POWER_SUPPLIES\n", age)
        self.put("ibdiagnet2.cables",
                 f"Port=1 Lid=1 GUID={hca}\nVendor: Acme\nPN: XX-1\nSN: S-77\nTemperature: 55C\nRX1 Power: inf mW, {self.dim % 65536}.000 dBm\n"
                 "RXPowerHighThresh: 4\nRXPowerLowThresh: 65530\n", age)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("ibdiagnet"))
    with Daemon(simulate="rail-64", args=("--set", "telemetry.interval=1s", "--set", f"telemetry.cable_file={folder}")) as daemon:
        daemon.up()
        daemon.files = Files(folder)
        daemon.files.guid = {n["name"]: n["guid"] for n in js(daemon.weft("node", "-o", "json"))}
        yield daemon


def alarms(d):
    r = d.weft("alarm", "-o", "json")  # ends with 1 where one is critical
    assert r.rc in (0, 1) and r.err == "", r
    return {(a["rule"], a["place"].split("/")[0]): a for a in json.loads(r.out)}


def test_no_source(run):
    devices = rows(ok(run.weft("health", "--devices", "-o", "csv")))
    assert len(devices) == 12 and {(x["state"], x["why"]) for x in devices} == {("unknown", "no source")}
    assert "\nmodule      no source\n" in ok(run.weft("counters", "gpu-0003 mlx5_0/1"))
    assert "infiniband_switch_fan_rpm{" not in metrics(run)


def metrics(d):
    c = UnixConnection(d.socket)
    try:
        c.request("GET", "/metrics")
        return c.getresponse().read().decode()
    finally:
        c.close()


def test_what_fails_is_said(run):
    f = run.files
    f.write()
    wait_for(lambda: run.get("/fabrics/default/devices?all=1")["items"][-1]["state"] == "healthy" or
             any(x["state"] == "healthy" for x in run.get("/fabrics/default/devices?all=1")["items"]), "a reading")
    assert alarms(run) == {} and run.weft("health", "--devices").rc == 0
    f.dim, f.fan, f.dc = -12, 0, "ERROR"
    f.write(age=1.5)
    wait_for(lambda: len(alarms(run)) == 3, "three alarms")
    a = alarms(run)
    fan, psu, dim = a["L18", SPINE], a["L18", LEAF], a["L17", LEAF]
    assert fan["severity"] == psu["severity"] == "critical" and fan["reason"] == "fan 2 at 0 turns a minute"
    assert psu["reason"] == "power supply 2: DC ERROR"
    assert dim["severity"] == "major" and dim["cable"] == "S-77" and "gpu-0003 mlx5_0" in dim["place"]
    assert dim["reason"].startswith("too little light: -12.0 dBm received on lane 1 at gpu-0003 mlx5_0[1]")

    r = run.weft("health")
    assert r.rc == 1
    out = r.out
    assert "degraded  " in out and "S-77" in out and "(L17)" in out
    assert "1 of 2 failed" in out and "fan 2 at 0 turns a minute (L18)" in out and "power supply 2: DC ERROR (L18)" in out
    assert f"next: weft alarm show {fan['id']}\n" in out or f"next: weft alarm show {psu['id']}\n" in out
    assert "spine-01" in (only := run.weft("health", SPINE).out) and LEAF not in only
    one = ok(run.weft("counters", "gpu-0003 mlx5_0/1"))
    assert "receives dBm -12.0 (-6.0 to 4.0); -12.0 dBm received on lane 1, its own limit -6.0 (L17)" in one
    hot = rows(run.weft("health", "--devices", "celsius>60", "-o", "csv").out)
    assert [x["name"] for x in hot] == ["gpu-0003 mlx5_0"] and hot[0]["state"] == "healthy"

    text = metrics(run)
    assert f'infiniband_switch_fan_rpm{{guid="{f.guid[SPINE]}",switch="{SPINE}",fan="2"}} 0\n' in text
    assert f'infiniband_switch_power_supply_status_info{{guid="{f.guid[LEAF]}",switch="{LEAF}",psu="2",status="ERROR"}} 1\n' in text
    assert 'port_module_rx_power_dbm{' in text and 'weft_alarm_active{' in text


def test_well_again_and_old(run):
    f = run.files
    f.fan, f.dc = 8000, "OK"
    f.write(age=1.2)
    wait_for(lambda: not any(x["active"] for k, x in alarms(run).items() if k[0] == "L18"), "fans and power are well again")
    assert alarms(run)["L17", LEAF]["active"]  # the light is as it was
    f.fan = 0
    f.write(age=25 * 3600)
    wait_for(lambda: all(x["old"] for x in run.get("/fabrics/default/devices?all=1")["items"] if x["sampled_at"]), "an old file")
    assert not any(x["active"] for k, x in alarms(run).items() if k[0] == "L18")
    assert "says nothing of now" in run.weft("health", "--devices", "-o", "csv").out
    assert "says nothing of now" in ok(run.weft("counters", "gpu-0003 mlx5_0/1"))
    assert "infiniband_switch_fan_rpm{" not in metrics(run)


def test_nobody_writes_it_any_more(tmp_path):
    """What stands says for how long nothing was read; after a day it is over, and that is said."""
    args = ("--set", "telemetry.interval=1s", "--set", f"telemetry.cable_file={tmp_path}")
    with Daemon(simulate="rail-64", args=args) as d:
        d.up()
        f = Files(str(tmp_path))
        f.guid = {n["name"]: n["guid"] for n in js(d.weft("node", "-o", "json"))}
        f.fan = 0
        f.write(86400 - 60)
        wait_for(lambda: "L18" in {k[0] for k, a in alarms(d).items() if a["active"]}, "an alarm", 120)
        a = [a for k, a in alarms(d).items() if k[0] == "L18"][0]
        wait_for(lambda: "; not read for 16 h" in [a for k, a in alarms(d).items() if k[0] == "L18"][0]["reason"], "its age", 120)
        event = wait_for(lambda: [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "cable-file-old"], "it is said", 120)
        assert len(event) == 1 and "not written for a day" in event[0]["text"]
        wait_for(lambda: not [1 for x in d.get("/alarms")["items"] if x["id"] == a["id"] and x["active"]], "it is over", 120)


def test_written_in_the_future(tmp_path):
    """It is read all the same, and said once; it counts as written when it was read."""
    args = ("--set", "telemetry.interval=1s", "--set", f"telemetry.cable_file={tmp_path}")
    with Daemon(simulate="rail-64", args=args) as d:
        d.up()
        f = Files(str(tmp_path))
        f.guid = {n["name"]: n["guid"] for n in js(d.weft("node", "-o", "json"))}
        f.write(-3600)
        state = lambda: [x for x in d.get("/fabrics/default/devices?all=1")["items"] if x["sampled_at"]]
        first = wait_for(state, "a reading")[0]["sampled_at"]
        assert first <= datetime.datetime.now(datetime.timezone.utc).isoformat()
        f.fan = 0
        f.write(-3700)
        wait_for(lambda: "L18" in {k[0] for k, a in alarms(d).items() if a["active"]}, "the next one is read too")
        event, = [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "cable-file-ahead"]
        assert event["severity"] == "warning" and "in the future" in event["text"]


def test_played(tmp_path):
    """A simulated fabric measures what it is told to, without a file."""
    with Daemon(simulate="rail-64", args=("--set", "telemetry.interval=1s")) as d:
        d.up()
        ok(d.weft("sim", "module", f"{LEAF}[3]"))
        ok(d.weft("sim", "device", SPINE))
        wait_for(lambda: "1 ok" not in d.weft("health", SPINE, "--devices", "-o", "csv").out and
                 "8 ok,2 ok" in d.weft("health", SPINE, "--devices", "-o", "csv").out, "a reading")
        assert alarms(d) == {}
        play = tmp_path / "play"
        play.write_text(f"0s module {LEAF}[3] --rx -12.5 --celsius 50\n+0.1s device {SPINE} --fans 2 --supplies 1 --celsius 95\n")
        ok(d.weft("sim", "play", str(play)))
        wait_for(lambda: len(alarms(d)) == 2, "two alarms")
        a = alarms(d)
        assert a["L17", LEAF]["reason"].startswith(f"too little light: -12.5 dBm received on lane 2 at {LEAF}[3]")
        assert a["L18", SPINE]["severity"] == "critical" and "fan" in a["L18", SPINE]["reason"]
        ok(d.weft("sim", "device", SPINE))
        wait_for(lambda: not any(x["active"] for k, x in alarms(d).items() if k[0] == "L18"), "it is well again")
        r = d.weft("sim", "device", SPINE, "--fans", "9")
        assert r.rc == 2 and "failed_fans" in r.err, r


def test_played_in_virtual_time():
    """Its readings are of its own time, days ahead of ours: they do not grow old."""
    hourly = [x for name in ("interval", "errors_interval", "detail_interval") for x in ("--set", f"telemetry.{name}=1h")]
    with Daemon(simulate="rail-64", args=("--set", "sim.time=virtual", *hourly)) as d:
        wait_for(lambda: d.weft("node").rc == 0 and d.get("/status")["fabrics"], "the fabric")
        wait_for(lambda: d.weft("sim", "device", SPINE).rc == 0, "a device to measure")
        later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=2)
        read = lambda: [x for x in d.get("/fabrics/default/devices?all=1")["items"] if x["name"] == SPINE and x["sampled_at"]]
        x, = wait_for(lambda: [x for x in read() if x["sampled_at"] > later.isoformat()], "two days", 120)
        assert not x["old"] and x["celsius"] == 50, x
        assert not [e for e in d.get("/events?limit=1000")["items"] if e["kind"] == "cable-file-old"]
