#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs.py: every finding and event that the code can produce is explained to operators in doc/operations.md, and every counter stands in
doc/telemetry.md with its unit, meaning and source, and every rule of alarms and every event about them in doc/alarms.md. Exit 1 with the
missing ones."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def codes():
    found = {}
    for folder in ("sm", "fabric", "routing", "daemon"):
        for p in sorted((ROOT / folder).glob("*.c")):
            if folder == "fabric" and p.name.startswith("reader"):
                continue
            text = p.read_text()
            for m in re.finditer(r'FINDING_[A-Z]+,\s*"([a-z0-9-]+)"', text):
                found[m.group(1)] = p.name
            for m in re.finditer(r'sm_event\(\w+,\s*"([a-z0-9-]+)"', text):
                found[m.group(1)] = p.name
            for m in re.finditer(r'\.kind = "([a-z0-9-]+)"', text):
                found[m.group(1)] = p.name
    return found


def counters():
    """Each row of counters.def as doc/telemetry.md must have it (`weft counters list --markdown` prints them)."""
    unit = {"WORDS": "bytes", "PACKETS": "packets", "EVENTS": "events", "TICKS": "ticks", "SYMBOLS": "symbols", "BLOCKS": "blocks"}
    text = (ROOT / "telemetry" / "counters.def").read_text()
    for m in re.finditer(r'^C\((.*?)\)$', text, re.M | re.S):
        words = re.findall(r'"((?:[^"\\]|\\.)*)"|(\w+)', m.group(1))
        name, ibta, metric = words[2][0], words[1][0], words[3][0]
        doc = "".join(w[0] for w in words[7:])
        yield name, f"| `{name}` | {unit[words[4][1]]} | {doc} | {ibta} ({words[5][1].lower()}) | `{metric}` |"


def alarms():
    """What doc/alarms.md must have: a row for each rule with its conditions, and each event of alarms and isolation."""
    text = (ROOT / "telemetry" / "alarm_rules.c").read_text()
    rule = re.findall(r'\{\.id = "(\w+)",\s*\.name = "[^"]*",\s*\.title = "([^"]*)"', text)
    for i, title in rule:
        yield f"| {i} | {title} |"
    for p in sorted((ROOT / "telemetry").glob("*.c")):
        if p.name.startswith(("alarm", "isolate")):
            for kind in re.findall(r'"((?:alarm|silence|maintenance|isolation)-[a-z]+|link-isolated)"', p.read_text()):
                if kind not in ("isolation-not", "isolation-cap"):  # a line of the log; a rule
                    yield f"`{kind}`"


def main():
    doc = (ROOT / "doc" / "operations.md").read_text()
    missing = ["%s (%s)" % (c, f) for c, f in sorted(codes().items()) if "`%s`" % c not in doc]
    for m in missing:
        print("doc/operations.md does not explain", m)
    telemetry = (ROOT / "doc" / "telemetry.md").read_text().splitlines()
    unlisted = [name for name, line in counters() if line not in telemetry]
    for name in unlisted:
        print("doc/telemetry.md does not have", name, "as `weft counters list --markdown` prints it")
    said = (ROOT / "doc" / "alarms.md").read_text()
    unsaid = sorted({a for a in alarms() if a not in said})
    for a in unsaid:
        print("doc/alarms.md does not have", a)
    sys.exit(1 if missing or unlisted or unsaid else 0)


if __name__ == "__main__":
    main()
