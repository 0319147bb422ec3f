# SPDX-License-Identifier: MIT
"""Code objects without their debug information, most of their bytes: for profiles, not launches."""

from cklang.elf import sections_of, with_headers


def without_debug_information(code: bytes) -> bytes:
    """Return an ELF file of 64 bits whose ``.debug`` sections are empty.

    All sections keep their numbers and names; what is loaded keeps its place in the file.
    """
    sections = sections_of(code)
    loaded = max(
        (section.offset + section.size for section in sections if section.is_loaded), default=0
    )
    result, headers = bytearray(code[:loaded]), []
    for each in sections:
        if each.is_loaded or not each.content:
            headers.append(each.header)
        elif each.name.startswith(".debug"):
            headers.append(each.header_at(0, 0))
        else:
            result += bytes(-len(result) % max(each.alignment, 1))
            headers.append(each.header_at(len(result), each.size))
            result += each.content
    return with_headers(bytes(result), headers)
