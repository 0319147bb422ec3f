# SPDX-License-Identifier: MIT
"""``cklang completion``: print a script that completes commands and options in a shell.

eval "$(cklang completion bash)"                            # in ~/.bashrc
eval "$(cklang completion zsh)"                             # in ~/.zshrc
cklang completion fish > ~/.config/fish/completions/cklang.fish
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

Words = Mapping[str, Sequence[str]]
"""The options and fixed words of each command."""

_BASH = """\
_cklang() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        words="{commands}"
    else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _cklang cklang
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("shell", choices=sorted(SHELLS))


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write(script(options.shell, options.words_of_commands()))
    return 0


def script(shell: str, words: Words) -> str:
    """Return the script of a shell.

    Example:
        >>> "check)" in script("bash", {"check": ["--only"]})
        True
    """
    return SHELLS[shell](words)


def _bash(words: Words) -> str:
    cases = (
        f'            {name}) words="{" ".join(options)}" ;;' for name, options in words.items()
    )
    return _BASH.format(commands=" ".join(words), cases="\n".join(cases))


def _zsh(words: Words) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(words)}"


def _fish(words: Words) -> str:
    lines = [f'complete -c cklang -n __fish_use_subcommand -f -a "{" ".join(words)}"']
    for name, word in words.items():
        known = " ".join(word)
        if known:
            lines.append(f'complete -c cklang -n "__fish_seen_subcommand_from {name}" -a "{known}"')
    return "\n".join(lines) + "\n"


SHELLS = {"bash": _bash, "fish": _fish, "zsh": _zsh}
"""The script of each shell."""
