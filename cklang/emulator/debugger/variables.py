# SPDX-License-Identifier: MIT
"""Values of a wave as a tree, which editors open level by level."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cklang.emulator.debugger.expressions import Reader, Registers
from cklang.emulator.debugger.session import Session

Rows = list[dict[str, Any]]

_FACTS = ("pc", "exec", "vcc", "scc", "m0", "mode")
_LDS_BYTES = 4096
"""Bytes of the LDS that are shown; `lds` in the console shows any part."""
_WORDS = 8


class Variables:
    """The scopes of the wave that a session shows, by the numbers that an editor names."""

    def __init__(self, session: Session) -> None:
        self._session, self._reader = session, Reader(session)
        self._makers: list[Callable[[], Rows]] = []

    def forget(self) -> None:
        """Forget all numbers: the program has gone on."""
        self._makers.clear()

    def _number(self, maker: Callable[[], Rows]) -> int:
        self._makers.append(maker)
        return len(self._makers)

    def of(self, number: int) -> Rows:
        """Return the variables behind a number."""
        if not 0 < number <= len(self._makers):
            raise LookupError(f"there are no variables {number} any more")
        return self._makers[number - 1]()

    def scopes(self) -> Rows:
        """Return the scopes of the wave that is shown now."""
        focus = self._session.focused()

        def kept(maker: Callable[[], Rows]) -> Callable[[], Rows]:
            def make() -> Rows:
                self._session.look_at(focus.group, focus.wave, focus.lane)
                return maker()

            return make

        makers: Mapping[str, Callable[[], Rows]] = {
            "Wave": self._facts,
            "Scalar registers": self._scalars,
            "Vector registers": self._vectors,
            "LDS": self._local,
            "Tensors": self._tensors,
        }
        return [
            {"name": name, "variablesReference": self._number(kept(maker)), "expensive": False}
            for name, maker in makers.items()
        ]

    def _facts(self) -> Rows:
        return [_row(name, self._reader.print(name)) for name in _FACTS]

    def _scalars(self) -> Rows:
        count = self._session.controlled().facts.sgprs
        return [_row(f"s{n}", self._reader.print(f"s{n}")) for n in range(count)]

    def _vectors(self) -> Rows:
        launch = self._session.controlled()
        rows = []
        for number in range(launch.facts.vgprs):
            is_acc = 0 < launch.first_agpr <= number
            name = f"a{number - launch.first_agpr}" if is_acc else f"v{number}"
            which = Registers(name[0], int(name[1:]), 1)
            lanes = self._reader.registers(which)[0]
            head = " ".join(f"{int(value):08x}" for value in lanes[:_WORDS])
            parts = partial(_lane_rows, [f"0x{int(value):08x}" for value in lanes])
            rows.append({**_row(name, f"{head} ..."), "variablesReference": self._number(parts)})
        return rows

    def _local(self) -> Rows:
        group = self._session.focused().group
        data = self._session.controlled().local(group, 0, _LDS_BYTES)
        width = 4 * _WORDS
        starts = range(0, len(data), width)
        return [_row(f"0x{at:x}", data[at : at + width].hex(" ", 4)) for at in starts]

    def _tensors(self) -> Rows:
        return [
            {
                **_row(name, f"{tensor.dtype}{list(tensor.shape)} at 0x{tensor.address:x}"),
                "memoryReference": hex(tensor.address),
                "variablesReference": self._number(partial(self._elements, name)),
            }
            for name, tensor in self._session.tensors().items()
        ]

    def _elements(self, name: str) -> Rows:
        shape = self._session.tensors()[name].shape
        if len(shape) < 2:
            return [_row(name, self._reader.tensor_text(name))]
        return [
            _row(f"{name}[{n}]", self._reader.tensor_text(f"{name}[{n}]"))
            for n in range(min(shape[0], _LDS_BYTES))
        ]


def _row(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "value": value, "variablesReference": 0, "evaluateName": name}


def _lane_rows(values: list[str]) -> Rows:
    return [_row(f"lane {lane}", value) for lane, value in enumerate(values)]
