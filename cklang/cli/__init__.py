# SPDX-License-Identifier: MIT
"""The command ``cklang``. Nothing is imported here."""
