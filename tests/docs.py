#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs.py: every finding and event that the code can produce is explained to operators in doc/operations.md. Exit 1 with the missing ones."""
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


def main():
    doc = (ROOT / "doc" / "operations.md").read_text()
    missing = ["%s (%s)" % (c, f) for c, f in sorted(codes().items()) if "`%s`" % c not in doc]
    for m in missing:
        print("doc/operations.md does not explain", m)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
