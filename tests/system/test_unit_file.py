# SPDX-License-Identifier: Apache-2.0
"""The service file: systemd accepts it without a word, and the sandbox is as tight as it is meant to be."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ETC = pathlib.Path(__file__).resolve().parents[2] / "etc"
EXPOSURE_MAX = 25  # of 100, as systemd-analyze counts; below 4.0 it calls a unit "OK", below 2.0 "SAFE"

needs_analyze = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


@pytest.fixture
def unit(tmp_path):
    """The unit as installed, but for a program that exists."""
    text = (ETC / "weftd.service.in").read_text()
    text, n = re.subn(r"^ExecStart=@sbindir@/weftd$", "ExecStart=/bin/true", text, flags=re.M)
    assert n == 1
    assert "@" not in re.sub(r"(modprobe@|rdma-load-modules@|opensm@|=~?@|\s@)", "", text)
    path = tmp_path / "weftd.service"
    path.write_text(text)
    return path


def test_program_is_where_the_unit_says(tmp_path):
    """meson installs weftd under the path that ExecStart names, and what else belongs to a service."""
    build = pathlib.Path(os.environ["WEFTD"]).resolve().parents[1]
    if not (build / "meson-info").is_dir() or not shutil.which("meson"):
        pytest.skip("not a meson build folder")
    r = run("meson", "install", "--no-rebuild", "--quiet", "-C", str(build), f"--destdir={tmp_path}")
    assert r.returncode == 0, r.stdout + r.stderr
    installed = {"/" + str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    unit = next(p for p in installed if p.endswith("/weftd.service"))
    program = re.search(r"^ExecStart=(\S+)$", (tmp_path / unit[1:]).read_text(), re.M).group(1)
    assert program in installed
    for end in ("/bin/weft", "/weft/weft.yaml", "/man8/weftd.8"):
        assert any(p.endswith(end) for p in installed), (end, sorted(installed))


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@needs_analyze
def test_systemd_accepts_it(unit):
    r = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit))
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")


@needs_analyze
def test_sandbox(unit):
    r = run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(unit))
    if "unrecognized option" in r.stderr:
        pytest.skip("this systemd-analyze cannot look at a file")
    assert r.returncode == 0, r.stdout + r.stderr


def test_sysusers_and_tmpfiles(tmp_path):
    if not shutil.which("systemd-sysusers") or not shutil.which("systemd-tmpfiles"):
        pytest.skip("systemd-sysusers or systemd-tmpfiles is not installed")
    (tmp_path / "etc").mkdir()
    r = run("systemd-sysusers", f"--root={tmp_path}", str(ETC / "weft.sysusers"))
    assert r.returncode == 0, r.stderr
    assert (tmp_path / "etc/group").read_text().find("weft:") >= 0
    if pathlib.Path("/proc/self").owner() != "root":
        pytest.skip("folders of root can be made by root only")
    (tmp_path / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    with open(tmp_path / "etc/group", "a") as f:
        f.write("root:x:0:\n")
    r = run("systemd-tmpfiles", "--create", f"--root={tmp_path}", str(ETC / "weft.tmpfiles"))
    assert (r.returncode, r.stderr) == (0, "")
    assert (tmp_path / "var/lib/weft").stat().st_mode & 0o7777 == 0o700
