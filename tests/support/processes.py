# SPDX-License-Identifier: MIT
"""Python in a process of its own."""

import subprocess
import sys
from typing import Any


def run_python(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with such arguments, ``-c`` and code or a script; it has to succeed."""
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done
