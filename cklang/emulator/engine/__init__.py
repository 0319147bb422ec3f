# SPDX-License-Identifier: MIT
"""The engine: code objects run at ISA level behind the HIP library, and what it tells of them."""
