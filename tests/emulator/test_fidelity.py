# SPDX-License-Identifier: MIT
"""The report of how a launch's operations are verified, and its table."""

import json

import numpy as np
import pytest

from cklang import emulator
from tests.emulator import record_verification as record
from tests.support.assembly import assembled, lanes_body, run_lanes

pytestmark = pytest.mark.usefixtures("emulator")


def test_the_table_has_what_tests_check(request: pytest.FixtureRequest) -> None:
    text = record.text()
    if request.config.getoption("--update-golden"):
        record.TABLE.write_text(text, "utf-8")
    assert text == record.TABLE.read_text("utf-8"), "run the test with --update-golden"
    assert set(json.loads(text)["operations"]) <= record.known()


def test_names_are_found_where_they_are() -> None:
    operations = record.known()
    texts = [{"a": ("v_add_f32_e64 v1, v2, v3", ["ds_append v1"])}, "v_nothing_b32"]
    names = record.named(record.strings(texts), operations)
    assert names == {"v_add_f32", "ds_append"}
    assert not record.named(["v_add_f32x v1"], operations)


def test_a_report() -> None:
    text = "  v_mfma_f32_4x4x4_16b_f16 v[10:13], v[2:3], v[4:5], 0\n  s_nop 15\n  v_clrexcp\n"
    module = assembled({"k": lanes_body(text)})
    for mode in ("fma", "exact", "cdna3"):
        emulator.numerics(mode)
        run_lanes(module, "k", np.zeros((64, 1), np.uint32))
        report = emulator.fidelity_report(module.device)
        assert report.numerics == mode
        rows = {row.operation: row for row in report.operations}
        product = rows["v_mfma_f32_4x4x4_16b_f16"]
        assert product.executed == 1
        assert product.numerics == mode
        assert "published bit model, in rational arithmetic" in product.verified
        assert rows["v_clrexcp"].verified == ("manual only",)
        assert report.operations[0].verified == ("manual only",)
        assert rows["s_waitcnt"].numerics is None
        assert set(rows) == set(emulator.fidelity(module.device))
        assert f'numerics "{mode}"' in str(report)
