# SPDX-License-Identifier: Apache-2.0
"""Routes: how fast they are computed and proved, and how well they spread traffic; on saved fabrics beside OpenSM's.

    ./dev bench route [--json] [--runs N] [--no-opensm] [--only fast|spread|faults|saved|rival]

Times are the best of the runs, whole computations on the manager's own pool; "wall of memory" is writing as many bytes as the tables have.
"proof keeping a state" is the one that the manager runs; proofs go beside the time of reading the tables' bytes once.
OpenSM's ftree is timed inside `opensm -o` on ibsim, from the same fabric: from the last MAD that it sends or takes before it writes tables up to the first
Set(SwitchInfo) or Set(LinearForwardingTable) (bench/umad_times.c). While it computes tables nothing is on the wire; whatever it does before and after that computation alone is not counted.
ibdmchk's histograms, of both managers' tables for ft3-1024, go to stderr.
Damaged fabrics: entries that four further faults change, and how many of these still led there by no longer a way; then all sorts of damage, where only what no cables join may stay unreached.
Figures of spreading: bandwidth of a flow, 1 where no cable carries two; as slow-down (1 / mean) where OpenSM stands beside, so that less is better everywhere.
Saved fabrics and their judge lie beside the project ($WEFT_SHARED, ../shared): rows without them say so. OpenSM's tables are those of ftree with root and host lists,
on ibsim from the same file; both sides' tables go through the same judge, which shares no code with either. OpenSM leaves some pairs without a route there
(they are printed): their flows count as no bandwidth in means; in "worst" and "fullest cable" they are left out, as the judge does.
Random permutations ("perm") are the judge's own eight: figures that come near each other there are luck. Over 256 other draws ndr-dgx-rail's slow-down is a tie (mean 1.575 on both sides,
worst 1.627 against 1.625, +- 0.002), the others' differ as shown.
All-to-all: beside it stands the least that the fullest cable can carry when nobody is cut off, from the fabric alone (least()); who loses pairs may be below. The row holds when it is neither above OpenSM's nor
above that least.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from benchlib import ROOT, WEFTD, Ibsim, Table, have_rival, note, run
from failoverlib import Records, times_shim

BENCH = os.environ.get("BENCH_ROUTE", os.path.join(os.path.dirname(WEFTD), "..", "routing", "bench_route"))
SHARED = os.environ.get("WEFT_SHARED", os.path.join(ROOT, "..", "shared"))
ALIAS = {"ft3-64-16": "ft3-16384"}
SAVED = [  # file, pattern of the root switches' names
    ("hdr-superpod-compute-4341ca.txt", r"CCORE"),
    ("hdr-director-cs8500-2328ca-puttylog-crlf.txt", r"/S\d+/"),
    ("ndr-dgx-rail-582ca.txt", r"SPINE"),
    ("ndr-rail8-256ca-ibdiagnet-port-labels.txt", None),
]
PATTERNS = ["rail_alone", "rail_shift", "rail_ring", "ring", "shift", "perm"]
NO_WORSE = 1.000001  # the judge's figures have six digits at most


def compute(fabric, *args):
    p = subprocess.run([BENCH, *args, fabric], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise RuntimeError("bench_route %s: %s" % (fabric, p.stderr[-300:]))
    return json.loads(p.stdout)


def fast(t, runs):
    for name, limit in (("ft3-64-16", 0.10), ("subnet-40960", 0.5)):
        label = ALIAS.get(name, name)
        r = compute(name, "-e", "rail", "-n", str(runs))
        t.add(label + " computed", r["compute"], "s", bar=limit)
        t.add(label + " proved", r["verify"], "s", bar=limit)
        t.add(label + " proof keeping a state", r["verify_keep"], "s", bar=limit)
        t.add(label + " proof, all threads' CPU", r["verify_cpu"], "s")
        t.add(label + " wall of memory, writing", r["memset"], "s")
        t.add(label + " wall of memory, reading", r["read"], "s")
        t.add(label + " peak RSS", r["rss"] / 2**20, "MB", bar=1.6 * r["tables"] / 2**20 + 200)
        assert r["ok"] and not r["credit_loop"] and r["unreached"] == 0, r


def spread(t):
    for name in ("superpod-64", "rail-1024", "rail-7936", "ft3-64-16"):
        r = compute(name, "-e", "rail", "-n", "1", "-q")
        for pattern in ("same_rail_shift", "slot_shift", "ring", "shift"):
            if pattern + "_load" in r:
                t.add("%s %s, fullest cable" % (name, pattern.replace("_", " ")), r[pattern + "_load"], "flows", bar=None if pattern == "shift" else 1)
        t.add(name + " all-to-all", r["alltoall_max_over_mean"], "of mean", bar=1.05)
        t.add(name + " permutation slow-down", 1 / r["permutation"], "")


def faults(t):
    """ft3-16384: tables kept to while trunks are dead, beside tables made anew; four seeds."""
    for seed in (1, 2, 3, 4):
        kept = compute("ft3-64-16", "-e", "rail", "-n", "1", "-q", "-d", "1", "-s", str(seed), "-m", "4")
        anew = compute("ft3-64-16", "-e", "rail", "-n", "1", "-q", "-d", "1", "-s", str(seed), "-a")
        plain = compute("ft3-64-16", "-e", "updn", "-n", "1", "-q", "-d", "1", "-s", str(seed), "-a")
        label = "1 %% of trunks dead, %d" % seed
        for how, r in (("kept to", kept), ("rail anew", anew), ("plain Dmodc (updn anew)", plain)):
            held = r is kept
            t.add("%s: %s, shifts" % (label, how), 1 / r["shift"], "slower", bar=1 / 0.95 if held else None)
            t.add("%s: %s, changed" % (label, how), 100 * r["changed"] / r["entries"], "%", bar=2.5 if held else None)
        t.add(label + ": changed by four further faults", kept["further_changed"], "entries")
        t.add(label + ": of these, still legal", kept["further_legal"], "entries", bar=0, absolute=True)
    r = compute("ft3-64-16", "-e", "rail", "-n", "5", "-d", "one", "-s", "1")
    t.add("ft3-16384, one trunk dead, repaired and compared", r["repair"] * 1000, "ms", bar=20)
    t.add("ft3-16384, one trunk dead, all threads' CPU", r["repair_cpu"] * 1000, "ms")


def worse(t):
    """Whatever is broken or cabled wrongly: all that cables reach is reached, and proved."""
    for damage, label in (("5", "5 % of trunks dead"), ("spines", "a spine in twenty dead"), ("leaves", "a leaf in twenty dead"),
                          ("crossed", "a trunk in a hundred crossed"), ("miscabled", "a cable in a hundred in another's place")):
        for how, extra in (("kept to", ()), ("made anew", ("-a",))):
            lost, proved = 0, True
            for fabric in ("ft3-32-8", "rail-1024", "superpod-8"):
                for seed in (1, 2):
                    r = compute(fabric, "-e", "auto", "-n", "1", "-d", damage, "-s", str(seed), *extra)
                    lost += r["unreached"]
                    proved = proved and r["ok"] and not r["credit_loop"]
            t.add("%s, %s: reachable pairs not reached" % (label, how), lost, "pairs", bar=0, absolute=True)
            assert proved, (damage, how)


def judge(tool, topology, tables, extra=()):
    p = subprocess.run([tool, "--json", *extra, topology, tables], stdout=subprocess.PIPE, text=True)
    if p.returncode > 1:
        raise RuntimeError("the judge cannot read " + tables)
    return json.loads(p.stdout)["a"]


def least(net):
    """Flows of all-to-all on the fullest cable, at least, whatever the tables, when no pair is lost. A table has one cable for a destination: so all k hosts of a leaf send to
    each of the others by one of its c cables, and where all of these lead to one switch, that switch sends what comes for a host by one of them."""
    kind, neighbours, hosts = {}, {}, {}
    text = open(net).read()
    for what, name, label in re.findall(r'^(Switch|Ca)\s+\d+\s+"([^"]+)"\s*#\s*"(.*)"', text, re.M):
        kind[name] = "switch" if what == "Switch" else "host" if "Aggregation" not in label else "other"
    for block in re.split(r"^(?=Switch|Ca)", text, flags=re.M):
        m = re.match(r'Switch\s+\d+\s+"([^"]+)"', block)
        if m:
            peers = re.findall(r'^\[\d+\][^"\n]*"([^"]+)"', block, re.M)
            neighbours[m.group(1)] = [p for p in peers if kind[p] == "switch"]
            hosts[m.group(1)] = sum(kind[p] == "host" for p in peers)
    total, most = sum(hosts.values()), 0
    for s, k in hosts.items():
        c = len(neighbours[s])
        if k and c:
            most = max(most, k * -(-(total - k) // c), -(-k // c) * (total - k) if len(set(neighbours[s])) == 1 else -(-k * (total - k) // c))
    return most


def lists(net, roots, work):
    """Root and host GUIDs for OpenSM, as ibsim numbers them."""
    root, host = [], []
    for kind, guid, name in re.findall(r'^(Switch|Ca)\s+\d+\s+"[SH]-([0-9a-f]+)"\s*#\s*"(.*)"', open(net).read(), re.M):
        if kind == "Switch":
            root += [int(guid, 16)] if roots and re.search(roots, name) else []
        elif "Aggregation" not in name:
            host.append(int(guid, 16) + 1)
    paths = []
    for what, guids in (("roots", root), ("hosts", host)):
        paths.append(os.path.join(work, what))
        with open(paths[-1], "w") as f:
            f.writelines("0x%016x\n" % g for g in guids)
    return (paths[0] if root else None), paths[1]


def opensm(net, root, host, work):
    d = os.path.join(work, "opensm")
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    with Ibsim(net, work) as sim:
        env = dict(sim.env(), OSM_CACHE_DIR=d, OSM_TMP_DIR=d)
        run(["opensm", "-o", "-f", os.path.join(d, "log"), "--dump_files_dir", d, "-D", "0x43", "-R", "ftree", *(["-a", root] if root else []), *(["-u", host] if host else [])], env, work, 300)
    return os.path.join(d, "opensm-lfts.dump")


# --- OpenSM's ftree on the same fabric ---

SWITCH_INFO, LFT, SET = 0x12, 0x19, 2


def write_net(name, work):
    net = os.path.join(work, name + ".net")
    with open(net, "w") as f:
        subprocess.check_call([WEFTD, "--offline", name, "--print-fabric", "ibsim"], stdout=f, stderr=subprocess.DEVNULL)
    return net


def opensm_routing(name, work):
    """Seconds that OpenSM's ftree computes: how long nothing is sent or taken before the first Set of tables, SwitchInfo's included."""
    d = os.path.join(work, "opensm")
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    net, records = write_net(name, work), Records(os.path.join(d, "times"))
    with Ibsim(net, work) as sim:
        env = dict(sim.env([times_shim(work)]), OSM_CACHE_DIR=d, OSM_TMP_DIR=d, **records.env())
        run(["opensm", "-o", "-f", os.path.join(d, "log"), "--dump_files_dir", d, "-R", "ftree"], env, work, 900)
    log = open(os.path.join(d, "log"), errors="replace").read()
    if "ftree tables configured on all switches" not in log:
        raise RuntimeError("OpenSM did not use ftree: " + log[-300:])
    mads = records.since(0)
    first = next(i for i, m in enumerate(mads) if m.attr == LFT and m.method == SET and not m.received)
    while mads[first - 1].attr in (SWITCH_INFO, LFT):
        first -= 1
    return (mads[first].ns - mads[first - 1].ns) / 1e9


def rival(t, work, with_opensm, runs):
    missing = "skipped: --no-opensm" if not with_opensm else "skipped: not installed: " + have_rival() if have_rival() else None
    if missing:
        t.add("ft3-16384 beside OpenSM's ftree", None, "s", skipped=missing)
    else:
        theirs = opensm_routing("ft3-64-16", work)
        ours = compute("ft3-64-16", "-e", "rail", "-V", "-n", str(runs))["compute"]
        t.add("ft3-16384 computed, beside OpenSM's ftree", ours, "s", theirs, 0.01)
    histograms(t, work, missing)


def ibdmchk(folder, stem, tables):
    """ibdmchk's histogram of destinations by cable between switches: {destinations: cables}. Its exit status tells nothing."""
    empty = os.path.join(folder, "empty.mcfdbs")
    open(empty, "w").close()
    p = subprocess.run(["ibdmchk", "-s", stem, "-f", tables, "-m", empty], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=600)
    for end in ("-I- Scanned:", "-I- Verifying all CA to CA paths"):
        if end not in p.stdout:
            raise RuntimeError("ibdmchk: " + p.stdout[-500:])
    begin = p.stdout.index("---------------------- CA to CA : LFT ROUTE HOP HISTOGRAM")
    text = p.stdout[begin:p.stdout.index("-I- Scanned:")]
    errors = re.findall(r"^-E-.*", p.stdout, re.M)
    note("\n".join([x for x in text.split("\n") if x.strip()] + errors[:5]))
    rows = re.findall(r"^\s+(\d+)\s+(\d+)$", text[text.index("NUM-DLIDS"):], re.M)
    return {int(n): int(ports) for n, ports in rows}, len(errors)


def histograms(t, work, missing):
    name, label = "ft3-16-16", "ft3-1024"
    if shutil.which("ibdmchk") is None:
        t.add(label + ", ibdmchk's histogram", None, "", skipped="skipped: not installed: ibdmchk (ibutils)")
        return
    ours = os.path.join(work, "ours")
    os.makedirs(ours, exist_ok=True)
    subprocess.check_call([WEFTD, "--once", "--simulate", name, "--set", "log_level=error", "--set", "routing.engine=rail", "--dump-subnet", ours],
                          stdout=subprocess.DEVNULL)
    note("%s, weft:" % label)
    mine, errors = ibdmchk(ours, "weft.lst", "weft.fdbs")
    theirs = None
    if not missing:
        opensm(write_net(name, work), None, None, work)
        note("%s, OpenSM's ftree:" % label)
        theirs, _ = ibdmchk(os.path.join(work, "opensm"), "opensm-subnet.lst", "opensm.fdbs")
    t.add(label + ", ibdmchk's errors", errors, "", bar=0, absolute=True)
    t.add(label + ", ibdmchk: most destinations over a cable", max(mine), "LIDs", max(theirs) if theirs else None, 1.0 if theirs else None)
    t.add(label + ", ibdmchk: sorts of cables by destinations", len(mine), "", len(theirs) if theirs else None, 1.0 if theirs else None)


def saved(t, work, with_opensm):
    folder = os.path.join(SHARED, "fabrics", "ibnetdiscover")
    source = os.path.join(SHARED, "tools", "lftcheck", "lftcheck.c")
    if not os.path.isdir(folder) or not os.path.exists(source):
        t.add("saved fabrics", None, "", skipped="skipped: no saved fabrics and judge in " + SHARED)
        return
    tool = os.path.join(work, "judge")
    subprocess.check_call(["gcc", "-O2", "-o", tool, source, "-lpthread", "-lm"])
    missing = "skipped: --no-opensm" if not with_opensm else "skipped: not installed: " + have_rival() if have_rival() else None
    for name, roots in SAVED:
        one(t, tool, os.path.join(folder, name), roots, missing, work)


def one(t, tool, path, roots, missing, work):
    label = re.sub(r"-\d+ca.*|-cs8500.*", "", os.path.basename(path))
    net, tables, lids = (os.path.join(work, x) for x in ("net", "tables", "lids"))
    with open(net, "w") as f:
        subprocess.check_call([WEFTD, "--offline", path, "--print-fabric", "ibsim"], stdout=f, stderr=subprocess.DEVNULL)
    root, host = lists(net, roots, work)
    tiers = ["--roots", root] if root and "CORE" in roots else []
    r = compute(path, "-e", "rail", "-n", "1", "-o", tables, "-g", lids)
    ours = judge(tool, path, tables, ["--guid2lid", lids, *tiers])
    theirs = None if missing else judge(tool, net, opensm(net, root, host, work), tiers)
    if missing:
        t.add(label + " beside OpenSM", None, "", skipped=missing)
    for what, key, unit in (("pairs lost", "reach.unreachable", "pairs"), ("channels in credit loops", "cdg.all.channels_in_cycles", "")):
        t.add("%s %s" % (label, what), int(ours[key]), unit, int(theirs[key]) if theirs else None, bar=0, absolute=True)
    assert r["ok"], path
    for pattern in PATTERNS:
        for what, figure in (("slow-down", mean), ("worst slow-down", worst), ("fullest cable", fullest)):
            t.add("%s %s %s" % (label, pattern.replace("_", " "), what), figure(ours, pattern), "", figure(theirs, pattern) if theirs else None,
                  NO_WORSE if theirs else None)
    bound, rival = least(net), int(theirs["a2a.max"]) if theirs else None
    t.add(label + " all-to-all, fullest cable", int(ours["a2a.max"]), "flows", rival, max(bound, rival) if theirs else None, absolute=True)
    t.add(label + " all-to-all, least without loss", bound, "flows")


def mean(own, pattern):
    """A flow that is lost has no bandwidth; who leaves it out is not the better for it."""
    flows = own[pattern + ".flows"] + own.get(pattern + ".failed_flows", 0) / own[pattern + ".patterns"]
    return flows / own[pattern + ".total_bw"]


def worst(own, pattern):
    return 1 / own[pattern + ".worst_mean_bw"] if own[pattern + ".patterns"] > 1 else mean(own, pattern)


def fullest(own, pattern):
    return int(own[pattern + ".max_load"])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--runs", type=int, default=9)
    ap.add_argument("--no-opensm", action="store_true")
    ap.add_argument("--only", default="fast,rival,spread,faults,saved")
    a = ap.parse_args()
    if not os.path.exists(BENCH):
        note("bench route: %s is missing; ./dev build makes it" % os.path.normpath(BENCH))
        sys.exit(1)
    t = Table()
    work = tempfile.mkdtemp(prefix="weft-bench-")
    try:
        if "fast" in a.only:
            fast(t, a.runs)
        if "rival" in a.only:
            rival(t, work, not a.no_opensm, a.runs)
        if "spread" in a.only:
            spread(t)
        if "faults" in a.only:
            faults(t)
            worse(t)
        if "saved" in a.only:
            saved(t, work, not a.no_opensm)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(t.show(a.json))


if __name__ == "__main__":
    main()
