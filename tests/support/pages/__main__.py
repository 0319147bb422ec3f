# SPDX-License-Identifier: MIT
"""Write the generated pages: ``python -m tests.support.pages``.

With names of tutorials, these are run first; what they print is written into the scripts, and their
pictures beside them. ``timeline`` records the picture of that name, which takes a kernel.
"""

from __future__ import annotations

import sys

from tests.support.pages import DOCS, GENERATED
from tests.support.pages.charts import TIMELINE, recorded_timeline
from tests.support.pages.tutorials import TUTORIALS, pictures, read, run, with_outputs

for name in sys.argv[1:]:
    if name == TIMELINE.stem:
        TIMELINE.write_text(f"{recorded_timeline()}\n", encoding="utf-8")
        continue
    tutorial = read(name)
    outputs = run(tutorial)
    tutorial.path.write_text(with_outputs(tutorial, outputs), encoding="utf-8")
    for file, picture in pictures(tutorial, outputs).items():
        (TUTORIALS / file).write_text(picture, encoding="utf-8")

for name, text in GENERATED.items():
    path = DOCS / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text(), encoding="utf-8")
