# SPDX-License-Identifier: MIT
"""From a call to a running kernel. Nothing is imported here."""
