# SPDX-License-Identifier: MIT
"""The C++ of some sixty kernels, byte for byte: every template, family, GPU and most element types.

``golden/keys.json`` has the keys. A change of the code that is to leave generated kernels alone
leaves these files alone; one that is to change them shows the change in its diff. Write them with
``--update-golden``.
"""

import json
from pathlib import Path

import pytest

from cklang.families import FAMILIES, key_from_json
from cklang.families.gemm.key import Pipeline, ProductKind
from cklang.keys import AnyKey
from tests.support.legal_kernels import source

GOLDEN = Path(__file__).parent / "golden"
KEYS: tuple[AnyKey, ...] = tuple(
    map(key_from_json, json.loads((GOLDEN / "keys.json").read_text("utf-8")))
)
SOURCES = GOLDEN / "sources"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.label)
def test_the_source_is_as_it_was(key: AnyKey, request: pytest.FixtureRequest) -> None:
    file, text = SOURCES / f"{key.label}.hip", source(key).inline
    if request.config.getoption("--update-golden"):
        file.write_text(text, "utf-8")
    assert text == file.read_text("utf-8")


def test_every_source_has_its_key() -> None:
    assert sorted(file.stem for file in SOURCES.iterdir()) == sorted(key.label for key in KEYS)


def test_every_family_and_pipeline_is_there() -> None:
    missing = set(FAMILIES) - {key.family for key in KEYS}
    assert not missing, "add a key to golden/keys.json, then --update-golden"
    products = [key for key in KEYS if key.family in ("gemm", "conv")]
    assert {key.signature.kind for key in products} == set(ProductKind)
    assert {key.algorithm.pipeline for key in products} == set(Pipeline)
