# SPDX-License-Identifier: MIT
"""What splits of an attention's keys gave, combined."""
