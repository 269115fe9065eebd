#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh FILE...: pytest on these files, with the first python3 that has it; 77 (skipped) when there is none.
export PYTHONDONTWRITEBYTECODE=1
for python in /usr/bin/python3 python3; do
    if "$python" -c 'import pytest' 2>/dev/null; then
        exec "$python" -m pytest -q -ra -p no:cacheprovider --durations=5 "$@"
    fi
done
echo "no python3 here has pytest" >&2
exit 77
