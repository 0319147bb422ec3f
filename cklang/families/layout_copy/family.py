# SPDX-License-Identifier: MIT
"""The family of copies that permute axes."""

from typing import Any

from cklang.families.layout_copy.key import LayoutCopySignature
from cklang.families.layout_copy.lower import lower_transpose
from cklang.families.protocol import HelperFamily

LAYOUT_COPY: HelperFamily[Any, LayoutCopySignature, Any] = HelperFamily(
    "layout_copy", LayoutCopySignature, lower_transpose
)
