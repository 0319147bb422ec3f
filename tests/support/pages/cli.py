# SPDX-License-Identifier: MIT
"""``docs/cli.md``: the commands by group, from the modules of ``cklang.cli``."""

from cklang.cli.main import GROUPS, sentences

__all__ = ["cli_page"]

_HEAD = """\
# The command line

`cklang --help` lists these commands, `cklang COMMAND --help` describes one with its options.
An op is named as `file.py:name`, whose folder is on the path as if Python ran the file; as
`package.module:name`; or as a file of IR text, `name.ckir`. The extents of its dims follow:
`M=384 N=512`. `eval "$(cklang completion bash)"` completes commands and options.

`python -m tests.support.pages` writes this page.
"""


def cli_page() -> str:
    """Return the text of ``docs/cli.md``."""
    parts = [_HEAD]
    for title, group in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for name, module in group.items():
            summary, details = sentences(module)
            parts.append(f"\n### cklang {name}\n\n{summary[:1].upper()}{summary[1:]}.\n")
            if details:
                parts.append(f"\n```text\n{details.strip()}\n```\n")
    return "".join(parts)
