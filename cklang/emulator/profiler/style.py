# SPDX-License-Identifier: MIT
"""The colours that the HTML pages share, for light and dark mode."""

COLOURS = """
:root{color-scheme:light dark;--page:#fff;--text:#1c1c1c;--note:#5c6470;--line:#ddd;
 --faint:#eee;--chosen:#e6edf5;--mark:#d1495b;--tint:75% 92%;--roof:#30638e}
@media (prefers-color-scheme:dark){:root{--page:#16181d;--text:#e4e6ea;--note:#a8b0bb;
 --line:#3a3f47;--faint:#262a31;--chosen:#27364a;--mark:#ff8a9a;--tint:35% 16%;
 --roof:#7fb2dc}}
"""
