# SPDX-License-Identifier: MIT
"""torch is optional: without it there is nothing to test here."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["test_*.py"]
