# SPDX-License-Identifier: Apache-2.0
"""What the benches share: ibsim and OpenSM as rivals on this machine, whole-process figures, the output contract of `./dev bench NAME [--json]`."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WEFTD = os.environ.get("WEFTD", os.path.join(ROOT, "build", "bin", "weftd"))
UMAD2SIM = "/usr/lib/%s-linux-gnu/umad2sim/libumad2sim.so" % os.uname().machine


def have_rival():
    """None when ibsim and OpenSM are here, else what is missing."""
    missing = [p for p in ("ibsim", "opensm") if shutil.which(p) is None]
    if not os.path.exists(UMAD2SIM):
        missing.append("libumad2sim")
    return ", ".join(missing) or None


def note(text):
    print(text, file=sys.stderr, flush=True)


class Table:
    """Rows {name, value, unit, rival, ratio, bar, holds}; bar is on the ratio where there is one, else on the value; lower is better.

    absolute: the bar is on the value although there is a rival; such rows have bar_on "value"."""

    def __init__(self):
        self.rows = []

    def add(self, name, value, unit, rival=None, bar=None, skipped=None, absolute=False):
        ratio = value / rival if rival else None
        judged = ratio if ratio is not None and not absolute else value
        holds = None if bar is None or judged is None else judged <= bar
        row = dict(name=name, value=value, unit=unit, rival=rival, ratio=ratio, bar=bar, holds=holds)
        if absolute and rival is not None:
            row["bar_on"] = "value"
        if skipped:
            row["skipped"] = skipped
        self.rows.append(row)

    def show(self, as_json):
        if as_json:
            print(json.dumps(self.rows, indent=1))
        else:
            f = lambda x: "-" if x is None else "%d" % x if isinstance(x, int) else "%.3f" % x
            print("%-44s %12s %-8s %12s %7s %6s  %s" % ("", "weft", "", "rival", "ratio", "bar", ""))
            for r in self.rows:
                verdict = r.get("skipped") or ("" if r["holds"] is None else "holds" if r["holds"] else "MISSED")
                print("%-44s %12s %-8s %12s %7s %6s  %s" % (r["name"], f(r["value"]), r["unit"], f(r["rival"]), f(r["ratio"]), f(r["bar"]), verdict))
        return 1 if any(r["holds"] is False for r in self.rows) else 0


class Ibsim:
    """Debian's ibsim on a .net file, under a socket name of its own."""

    def __init__(self, net, work):
        self.net, self.work = net, work
        self.name = "weftbench%d" % os.getpid()
        self.out = os.path.join(work, "ibsim.out")

    def __enter__(self):
        text = open(self.net).read()
        cas, switches = len(re.findall(r"^(?:Ca|Hca)\b", text, re.M)), re.findall(r"^Switch\s+(\d+)", text, re.M)
        ports = sum(int(n) + 1 for n in switches) + 2 * cas
        env = dict(os.environ, IBSIM_SOCKNAME=self.name)
        self.proc = subprocess.Popen(
            ["ibsim", "-s", "-I", "-N", str(cas + len(switches) + 10), "-S", str(len(switches) + 10), "-P", str(ports + 100), "-L", "49152", self.net],
            stdin=subprocess.PIPE, stdout=open(self.out, "w"), stderr=subprocess.STDOUT, env=env, cwd=self.work)
        deadline = time.monotonic() + 120
        while "simulator ready" not in open(self.out).read():
            if self.proc.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("ibsim does not start: " + open(self.out).read()[-300:])
            time.sleep(0.05)
        self.host = re.search(r'^(?:Ca|Hca)\s+\d+\s+"([^"]+)"', text, re.M).group(1)
        return self

    def __exit__(self, *a):
        self.proc.stdin.close()
        self.proc.send_signal(signal.SIGKILL)
        self.proc.wait()

    def env(self, preload=()):
        return dict(os.environ, IBSIM_SOCKNAME=self.name, SIM_HOST=self.host, LD_PRELOAD=":".join([*preload, UMAD2SIM]))


def run(cmd, env, work, timeout):
    """Runs to the end; (rc, wall, cpu, peak RSS bytes, stdout). Figures are of the process itself."""
    out = tempfile.TemporaryFile()
    t0 = time.monotonic()
    p = subprocess.Popen(cmd, env=env, cwd=work, stdout=out, stderr=open(os.path.join(work, os.path.basename(cmd[0]) + ".err"), "w"))
    timer_end = t0 + timeout
    while True:
        pid, status, ru = os.wait4(p.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > timer_end:
            p.kill()
            os.wait4(p.pid, 0)
            raise RuntimeError("%s did not end within %d s" % (cmd[0], timeout))
        time.sleep(0.01)
    p.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - t0
    out.seek(0)
    return p.returncode, wall, ru.ru_utime + ru.ru_stime, ru.ru_maxrss * 1024, out.read().decode()


def counter_shim(work):
    so = os.path.join(work, "umad_count.so")
    subprocess.check_call(["gcc", "-O2", "-shared", "-fPIC", "-o", so, os.path.join(ROOT, "bench", "umad_count.c"), "-ldl"])
    return so
