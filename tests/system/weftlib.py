# SPDX-License-Identifier: Apache-2.0
"""Starts weftd and weft for whole-daemon tests. Only the standard library and pytest.

    with Daemon(simulate="rail-256") as d:
        rc, out, err = d.weft("status", "--wait", "60")
        nodes = d.get("/fabrics/default/nodes")["items"]

The programs are found in $WEFTD and $WEFT; need_programs() skips where they are not set.
"""
import collections
import csv
import http.client
import io
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

DEADLINE = 120  # of everything that is waited for; a machine may be busy

Result = collections.namedtuple("Result", "rc out err")


def need_programs():
    """A mark for modules that need both programs."""
    missing = [v for v in ("WEFTD", "WEFT") if not os.access(os.environ.get(v, ""), os.X_OK)]
    return pytest.mark.skipif(bool(missing), reason=f"no program in ${' and $'.join(missing)}")


def wait_for(condition, what="it", seconds=DEADLINE):
    """The first true value of condition(), asked again and again until the deadline."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.02)


def clean_environment(**more):
    """One that says nothing about sockets, colours or places, in a UTF-8 locale and in UTC."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "LC_")) and k not in ("NO_COLOR", "COLUMNS")}
    env.update(LANG="C.UTF-8", TZ="UTC", **more)
    return env


def weft(*args, socket_path=None, env=None, uid=None, stdout=subprocess.PIPE, timeout=DEADLINE):
    """Runs weft to its end: (exit code, stdout, stderr)."""
    command = [os.environ["WEFT"], *map(str, args)]
    if uid is not None:
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command]
    environment = clean_environment(**(env or {}))
    if socket_path is not None:
        environment["WEFT_SOCKET"] = str(socket_path)
    r = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment,
                       timeout=timeout, encoding="utf-8", errors="surrogateescape")
    return Result(r.returncode, r.stdout, r.stderr)


def ok(r, rc=0):
    """What a command printed that ended so and had nothing to complain of."""
    assert (r.rc, r.err) == (rc, ""), r
    return r.out


def js(r, rc=0):
    return json.loads(ok(r, rc))


def rows(text):
    """Lines of CSV, each a dict by the titles."""
    table = list(csv.reader(io.StringIO(text)))
    assert all(len(r) == len(table[0]) for r in table)
    return [dict(zip(table[0], r)) for r in table[1:]]


def weft_on_terminal(*args, socket_path=None, env=None, columns=100, timeout=DEADLINE):
    """Runs weft with a terminal of its own: (exit code, all that the terminal got, "")."""
    pid, fd = pty.fork()
    if pid == 0:
        environment = clean_environment(TERM="xterm", COLUMNS=str(columns), **(env or {}))
        if socket_path is not None:
            environment["WEFT_SOCKET"] = str(socket_path)
        os.execve(os.environ["WEFT"], [os.environ["WEFT"], *map(str, args)], environment)
    data, end = b"", time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    chunk = os.read(fd, 65536)
                except OSError:  # the other side is closed
                    break
                if not chunk:
                    break
                data += chunk
        else:
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(fd)
        status = os.waitpid(pid, 0)[1]
    return Result(os.waitstatus_to_exitcode(status), data.decode(errors="surrogateescape").replace("\r\n", "\n"), "")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=DEADLINE):
        super().__init__("weftd", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def listens(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.connect(str(path))
            return True
        except OSError:
            return False


class Daemon:
    """A weftd with its own folder: socket s, log, state. Ends with the block, by pid.

    simulate: a name or file; args: more of the command line; start=False leaves start() to the caller.
    """

    def __init__(self, simulate=None, args=(), env=None, http="127.0.0.1:0", start=True):
        # Others shall reach the socket, so that it is the socket that refuses.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="weft-test-"))
        self.dir.chmod(0o755)
        self.socket = self.dir / "s"
        self.log = self.dir / "log"
        self.command = [os.environ["WEFTD"], "--config", "/dev/null", "--state", str(self.dir / "state"), "--socket",
                        str(self.socket), "--http", http]
        if simulate is not None:
            self.command += ["--simulate", str(simulate)]
        self.command += map(str, args)
        self.env = clean_environment(**(env or {}))
        self.start_now = start
        self.process = None

    def __enter__(self):
        if self.start_now:
            try:
                self.start()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        wait_for(lambda: self.process.poll() is not None or listens(self.socket), "weftd's socket")
        assert self.process.poll() is None, f"weftd ended: {self.log.read_text(errors='replace')[-2000:]}"

    def stop(self):
        """Its exit code; None when it was not running."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        rc, self.process = self.process.returncode, None
        return rc

    def weft(self, *args, **more):
        return weft(*args, socket_path=self.socket, **more)

    def terminal(self, *args, **more):
        return weft_on_terminal(*args, socket_path=self.socket, **more)

    def request(self, method, path, body=None, headers=None):
        """(status, JSON or text); path below /api/v1."""
        c = UnixConnection(self.socket)
        try:
            head = dict(headers or {})
            if body is not None:
                head["Content-Type"] = "application/json"
            c.request(method, "/api/v1" + path, None if body is None else json.dumps(body), head)
            r = c.getresponse()
            data = r.read().decode()
            return r.status, json.loads(data) if "json" in r.getheader("Content-Type", "") else data
        finally:
            c.close()

    def get(self, path):
        status, answer = self.request("GET", path)
        assert status == 200, answer
        return answer

    def post(self, path, body=None):
        status, answer = self.request("POST", path, body)
        assert status in (200, 202), answer
        return answer

    def up(self):
        """Waits until every fabric is up."""
        r = self.weft("status", "--wait", DEADLINE, "-o", "json")
        assert r.rc in (0, 1), r.err
        assert all(f["state"] == "up" for f in json.loads(r.out)["fabrics"]), r.out
        return self
