#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py [CC]: who includes whom, and what no text of the project may say. Exit 1 with a list of what is wrong.

A folder may include what stands below it, nothing beside or above; the command line knows lib/ only. x/x_priv.h is for
x/ alone. Each header compiles by itself. SQLite appears in db/ only; routing/ and qos/ are pure.
"""
import concurrent.futures
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LEVEL = {"lib": 0, "mad": 1, "fabric": 2, "routing": 3, "qos": 3, "db": 4, "sm": 5, "sim": 5, "eth": 5, "telemetry": 5,
         "api": 6, "daemon": 7}
CLIENTS = {"cli": {"lib"}}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
# What a pure folder has no use for: descriptors, clocks, threads, randomness, the log.
IMPURE = {"time.h", "sys/time.h", "pthread.h", "threads.h", "unistd.h", "fcntl.h", "sys/socket.h", "sys/random.h", "signal.h",
          "lib/log.h", "lib/loop.h"}
# Paths of the machine that somebody works on, and such.
MACHINE = re.compile(r"/work/(?:main|shared)|/home/\w|/root/|/Users/|/tmp/weft/")
ALLOWED = {"tests/layers.py"}


def sources(folder):
    return sorted(p for p in (ROOT / folder).glob("**/*") if p.suffix in (".c", ".h"))


def may_include(folder, target):
    if target == folder:
        return True
    if folder in CLIENTS:
        return target in CLIENTS[folder]
    return target in LEVEL and LEVEL[target] < LEVEL[folder]


def check_includes():
    for folder in [*LEVEL, *CLIENTS]:
        for path in sources(folder):
            name = path.relative_to(ROOT)
            for quote, what in INCLUDE.findall(path.read_text()):
                if quote == "<":
                    if what == "sqlite3.h" and folder != "db":
                        yield f"{name}: includes <{what}>: SQLite is db/'s alone"
                    if what in IMPURE and folder in ("routing", "qos"):
                        yield f"{name}: includes <{what}>: {folder}/ is pure"
                    continue
                target = what.split("/")[0]
                if not (ROOT / what).exists():
                    yield f'{name}: includes "{what}", which is no path from the root of the project'
                elif not may_include(folder, target):
                    yield f'{name}: includes "{what}": {target}/ is not below {folder}/'
                elif what.endswith("_priv.h") and target != folder:
                    yield f'{name}: includes "{what}", which is private to {target}/'
                elif what in IMPURE and folder in ("routing", "qos"):
                    yield f'{name}: includes "{what}": {folder}/ is pure'


def check_folders():
    """A folder with C that the list does not know is a mistake of the list."""
    known = {*LEVEL, *CLIENTS, "tests", "bench"}
    for path in sorted(ROOT.iterdir()):
        if path.is_dir() and path.name not in known and not path.name.startswith((".", "build")) and any(path.glob("*.[ch]")):
            yield f"{path.name}/: has no place among the layers"


def compiles_alone(cc, header):
    r = subprocess.run([*cc, "-std=gnu17", "-D_GNU_SOURCE", '-DWEFT_VERSION="0"', f"-I{ROOT}", "-fsyntax-only", "-Wall", "-Wextra",
                        "-Wno-unused-parameter", "-Werror", "-x", "c", "-include", str(header), "/dev/null"],
                       capture_output=True, text=True)
    if r.returncode:
        return f"{header.relative_to(ROOT)}: does not compile alone:\n{r.stderr.strip()}"
    return None


def check_headers(cc):
    headers = [p for folder in [*LEVEL, *CLIENTS] for p in sources(folder) if p.suffix == ".h"]
    headers = [h for h in headers if not re.search(r"^#include [A-Z]", h.read_text(), re.M)]  # a template: who includes it says of what
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield from filter(None, pool.map(lambda h: compiles_alone(cc, h), headers))


def texts():
    """Every text of the project: tracked files, or all but build folders where there is no git."""
    r = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True)
    if r.returncode == 0 and r.stdout:
        return [ROOT / n for n in r.stdout.decode().split("\0") if n]
    return [p for p in ROOT.glob("**/*") if p.is_file() and not p.relative_to(ROOT).parts[0].startswith((".", "build"))]


def check_texts():
    for path in texts():
        name = str(path.relative_to(ROOT))
        if name in ALLOWED or not path.is_file() or path.stat().st_size > 4 << 20:
            continue
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for i, line in enumerate(data.decode(errors="replace").splitlines(), 1):
            if MACHINE.search(line):
                yield f"{name}:{i}: speaks of one machine: {line.strip()[:120]}"


def check_license():
    for folder in [*LEVEL, *CLIENTS, "tests", "bench"]:
        for path in sources(folder):
            if not path.read_text().startswith("// SPDX-License-Identifier: Apache-2.0\n"):
                yield f"{path.relative_to(ROOT)}: does not begin with the licence line"


def main():
    cc = sys.argv[1:] or ["gcc"]
    wrong = [*check_folders(), *check_includes(), *check_headers(cc), *check_texts(), *check_license()]
    print("\n".join(wrong) or "layers: all in order")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
