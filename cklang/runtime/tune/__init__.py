# SPDX-License-Identifier: MIT
"""Measuring kernels: cases as plain data, a process that may crash, sessions that go on."""
