# SPDX-License-Identifier: MIT
"""Settings of all tests: hypothesis profiles, chosen with ``--hypothesis-profile=nightly``.

``dev`` draws the same examples in every run, so that a red run means a change; ``ci`` and
``nightly`` explore.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Deadlines measure the machine, not the code: builds and emulated kernels share its cores.
_COMMON = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

settings.register_profile("dev", _COMMON, max_examples=40, derandomize=True)
settings.register_profile("ci", _COMMON, max_examples=200)
settings.register_profile("nightly", _COMMON, max_examples=5000)
settings.load_profile("dev")
