# SPDX-License-Identifier: MIT
"""The debugger's terminal: commands like gdb's, from a keyboard or a file."""

import cmd
from collections.abc import Callable, Iterable, Sequence
from typing import IO

from cklang.emulator.debugger import views
from cklang.emulator.debugger.breakpoints import Location, Waves, parse_breakpoint
from cklang.emulator.debugger.expressions import Reader, parse_registers, parse_shape
from cklang.emulator.debugger.origins import origins_text
from cklang.emulator.debugger.session import Session
from cklang.emulator.debugger.values import FORMATS, decoded, format_of
from cklang.emulator.debugger.wire import Goal, Reason, Stop, Until
from cklang.errors import CkError, error

_ALIASES = {
    "b": "break", "tb": "tbreak", "d": "delete", "r": "run", "c": "continue", "s": "step",
    "n": "next", "si": "stepi", "rc": "reverse_continue", "rs": "reverse_step",
    "rsi": "reverse_stepi", "l": "list", "p": "print", "i": "info", "disas": "disassemble",
    "wg": "workgroup", "q": "quit", "exit": "quit", "bt": "backtrace", "h": "help",
}  # fmt: skip
_USAGE = {
    "break": "PLACE [workgroup N] [wave N] [lane N]",
    "tbreak": "PLACE ...",
    "watch": "ADDRESS [BYTES]",
    "awatch": "ADDRESS [BYTES]",
    "delete": "[N ...]",
    "step": "[N]",
    "next": "[N]",
    "stepi": "[N]",
    "reverse_stepi": "[N]",
    "reverse_step": "[N]",
    "goto": "N",
    "workgroup": "N",
    "wave": "N",
    "lane": "N",
    "list": "[PLACE]",
    "disassemble": "[*PC | all]",
    "info": "[WHAT]",
    "registers": "[VALUE [FORMAT]]",
    "print": "VALUE [FORMAT]",
    "x": "ADDRESS [FORMAT] [SHAPE]",
    "lds": "OFFSET [FORMAT] [SHAPE]",
    "scratch": "OFFSET [FORMAT] [SHAPE]",
    "dist": "[*PC] [D | A | B] | REGISTERS FORMAT",
    "tile": "[*PC] [D | A | B]",
    "who": "ROW COLUMN [*PC] [D | A | B]",
    "help": "[COMMAND]",
}
"""What follows the name of each command that takes words."""
_WATCHED = 4
"""Bytes that `watch` watches unless it is told."""


class Terminal(cmd.Cmd):
    """Runs commands on a session.

    Example:
        >>> import io
        >>> screen = io.StringIO()
        >>> with Session(["true"]) as session:
        ...     _ = Terminal(session, screen).execute(["break saxpy.cpp:12 wave 1", "run"])
        >>> print(screen.getvalue(), end="")
        breakpoint 1: saxpy.cpp:12, wave 1
        breakpoint 1: saxpy.cpp:12, wave 1 is not reached: the program has launched no kernel
        the program has ended with status 0
    """

    prompt = "(cklang) "
    intro = None

    def __init__(self, session: Session, screen: IO[str] | None = None) -> None:
        super().__init__(stdout=screen)
        self.session = session
        self.reader = Reader(session)
        self.failed = False
        """Whether a command could not be done."""
        self._launch = 0

    # Commands in general

    def execute(self, lines: Iterable[str], *, echo: bool = False) -> bool:
        """Run commands until one fails or ends the terminal; return whether to go on.

        Empty lines, and those that begin with #, do nothing. ``echo`` writes each behind a prompt,
        as if it had been typed.
        """
        for line in map(str.strip, lines):
            if not line or line.startswith("#"):
                continue
            if echo:
                self._put(f"{self.prompt}{line}")
            if self.postcmd(self.onecmd(line), line) or self.failed:
                return False
        return True

    def at_launch(self, commands: Sequence[str]) -> None:
        """Control a launch of this process: run commands, or read them, until it goes on."""
        self._show(self.session.run_goal(Goal(Until.STEP)))
        if commands:
            self.execute(commands)
        else:
            self.cmdloop()

    def postcmd(self, stop: bool, line: str) -> bool:
        """End the loop of a launch of this process when the launch goes on."""
        return stop or (not self.session.words and self.session.launch is None)

    def onecmd(self, line: str) -> bool:
        """Run one command; what is wrong with it is written."""
        self.failed = False
        try:
            return bool(super().onecmd(line))
        except CkError as problem:
            self.failed = True
            self._put(str(problem))
            return False

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Split a line; commands may be shortened, and have - for _."""
        word, _, rest = line.strip().partition(" ")
        if word in ("EOF", ""):
            return (word or None), "", line.strip()
        name = self._full_name(word.replace("-", "_"))
        return name, rest.strip(), f"{name} {rest.strip()}".strip()

    def _full_name(self, word: str) -> str:
        names = self._names()
        if word in names:
            return word
        if word in _ALIASES:
            return _ALIASES[word]
        fitting = [name for name in names if name.startswith(word)]
        if len(fitting) != 1:
            hint = f"it could be {', '.join(fitting)}" if fitting else "nothing begins like it"
            raise error("D031", got=word, hint=hint.replace("_", "-"))
        return fitting[0]

    def _names(self) -> list[str]:
        return sorted(name[3:] for name in dir(self) if name.startswith("do_") and name != "do_EOF")

    def completenames(self, text: str, *_: object) -> list[str]:
        """Complete the name of a command."""
        names = (name.replace("_", "-") for name in self._names())
        return [name for name in names if name.startswith(text)]

    def completedefault(self, text: str, line: str, *_: object) -> list[str]:
        """Complete formats, tensors, and files of the launch."""
        words = [*FORMATS, *self.session.tensors()]
        if line.split()[0] in ("b", "break", "tb", "tbreak") and self.session.code is not None:
            words = [*dict.fromkeys(place.short for place in self.session.code.places)]
        return [word for word in words if word.startswith(text)]

    def emptyline(self) -> bool:
        """Repeat nothing."""
        return False

    def _put(self, text: str) -> None:
        self.stdout.write(f"{text}\n")
        self.stdout.flush()

    def do_help(self, arg: str) -> None:
        """Help [COMMAND]: what commands do."""
        for name in [self._full_name(arg.replace("-", "_"))] if arg else self._names():
            text = str(getattr(self, f"do_{name}").__doc__)
            words = f"{name.replace('_', '-')} {_USAGE.get(name, '')}".rstrip()
            self._put(f"{words}: {text if arg else text.splitlines()[0]}")

    # Breakpoints

    def do_break(self, arg: str) -> None:
        """Stop there.

        PLACE: FILE:LINE, LINE of the present file, *PC (bytes from the kernel's start), @OPERATION
        (a mnemonic or a pattern: @v_mfma*), or a kernel's name, whose launches stop at their start.
        """
        self._add(*parse_breakpoint(arg, self.session.users_place()))

    def do_tbreak(self, arg: str) -> None:
        """Stop there once."""
        self._add(*parse_breakpoint(arg, self.session.users_place()), temporary=True)

    def do_watch(self, arg: str) -> None:
        """Stop before global memory is changed there."""
        self._watch(arg, reads=False)

    def do_awatch(self, arg: str) -> None:
        """Stop before global memory is read or changed there."""
        self._watch(arg, reads=True)

    def _watch(self, arg: str, *, reads: bool) -> None:
        words = arg.rsplit(maxsplit=1)
        size = int(words[1]) if len(words) == 2 and words[1].isdigit() else _WATCHED
        begin = self.reader.address(words[0] if len(words) == 2 and words[1].isdigit() else arg)
        self._add(Location(memory=(begin, begin + size), reads=reads), Waves())

    def _add(self, location: Location, waves: Waves, *, temporary: bool = False) -> None:
        new = self.session.add_breakpoint(location, waves, temporary=temporary)
        pending = self.session.code is not None and not self.session.is_placed(new)
        self._put(f"{new}{', not in this launch' * pending}")

    def do_catch(self, arg: str) -> None:
        """Stop at faults of every launch, and at what checks report; without, breakpoints decide.

        Every launch from now on is under control, and slower.
        """
        self.session.catches_faults = True
        self._put("faults of every launch stop")

    def do_delete(self, arg: str) -> None:
        """Remove breakpoints; all without a number."""
        for word in arg.split() or list(map(str, self.session.breakpoints)):
            if not word.isdigit() or not self.session.delete_breakpoint(int(word)):
                raise error("D039", command="delete", problem=f"there is no breakpoint {word}")

    # Running

    def do_run(self, arg: str) -> None:
        """Start the program, again if it runs, and go to the first breakpoint."""
        self._launch = 0
        self._show(self.session.run())

    def do_start(self, arg: str) -> None:
        """Start the program and stop at the beginning of its first launch."""
        self._launch = 0
        self._show(self.session.run(to_launch=True))

    def do_continue(self, arg: str) -> None:
        """Run to the next breakpoint, in this launch or a later one."""
        self._show(self.session.resume())

    def do_launch(self, arg: str) -> None:
        """Run to the beginning of the next launch."""
        self._show(self.session.next_launch())

    def do_finish(self, arg: str) -> None:
        """Run to the end of the launch, past breakpoints, and stop there."""
        self._show(self.session.run_goal(Goal(Until.END)))

    def do_step(self, arg: str) -> None:
        """Run the wave to another source line, into functions."""
        self._repeat(arg, lambda: self.session.step(Until.LINE))

    def do_next(self, arg: str) -> None:
        """Run the wave to another source line, over calls."""
        self._repeat(arg, lambda: self.session.step(Until.LINE, 1))

    def do_stepi(self, arg: str) -> None:
        """Let the wave execute N instructions (1)."""
        self._show(self.session.step_instructions(self._count("stepi", arg)))

    def do_reverse_stepi(self, arg: str) -> None:
        """Go back by N instructions of the wave (1)."""
        self._show(self.session.step_instructions(-self._count("reverse_stepi", arg)))

    def do_reverse_step(self, arg: str) -> None:
        """Go back to where the wave came to a source line."""
        self._repeat(arg, lambda: self.session.step(Until.LINE_BEFORE))

    def do_reverse_continue(self, arg: str) -> None:
        """Go back to the last breakpoint, or the beginning of the launch."""
        self._show(self.session.run_goal(Goal(Until.BREAKPOINT_BEFORE)))

    def do_goto(self, arg: str) -> None:
        """Go to where the wave has executed N instructions, forward or back."""
        self._show(self.session.step(Until.COUNT, self._count("goto", arg)))

    def _count(self, command: str, arg: str) -> int:
        if arg and not arg.isdigit():
            raise error("D039", command=command.replace("_", "-"), problem=f"{arg!r} is no number")
        return int(arg or "1")

    def _repeat(self, arg: str, once: Callable[[], Stop]) -> None:
        for left in reversed(range(self._count("step", arg))):
            stop = once()
            if stop.reason is not Reason.STEP or left == 0:
                self._show(stop)
                return

    def _show(self, stop: Stop | None) -> None:
        if stop is None and not self.session.words:
            return
        if stop is None:
            for line in self.session.unreached():
                self._put(line)
            self._put(f"the program has ended with status {self.session.status}")
            return
        if self._launch != self.session.number:
            self._launch = self.session.number
            self._put(views.launch_text(self.session))
        self._put(views.stop_text(self.session, stop))

    # Where

    def do_where(self, arg: str) -> None:
        """The launch, and where the wave is that is shown."""
        self._put(views.launch_text(self.session))
        if self.session.stop is not None:
            self._put(views.stop_text(self.session, self.session.stop))

    def do_backtrace(self, arg: str) -> None:
        """Functions that the wave is in, the innermost first, through calls that are inlined."""
        self._put(views.backtrace_text(self.session))

    def do_workgroup(self, arg: str) -> None:
        """Show this workgroup, by its number in the order of launching."""
        self._look(group=self._count("workgroup", arg), wave=0)

    def do_wave(self, arg: str) -> None:
        """Show this wave of the workgroup."""
        self._look(wave=self._count("wave", arg))

    def do_lane(self, arg: str) -> None:
        """The lane of addresses in vector registers, and of scratch."""
        focus = self.session.look_at(lane=self._count("lane", arg))
        self._put(f"lane {focus.lane}")

    def _look(self, group: int | None = None, wave: int | None = None) -> None:
        self.session.look_at(group, wave)
        if self.session.stop is not None:
            self._put("\n".join(views.stop_text(self.session, self.session.stop).splitlines()[-3:]))

    def do_list(self, arg: str) -> None:
        """Source lines around the present one, or around FILE:LINE."""
        self._put(views.source_text(self.session, arg))

    def do_disassemble(self, arg: str) -> None:
        """Instructions around the present one."""
        self._put(views.disassembly(self.session, arg))

    def do_info(self, arg: str) -> None:
        """Breakpoints, waves, registers, launch, memory, tensors; alone, a list of these."""
        table: dict[str, Callable[[Session], str]] = {
            "breakpoints": views.breakpoints_text,
            "waves": views.waves_text,
            "registers": views.registers_text,
            "launch": views.launch_text,
            "memory": views.memory_text,
            "tensors": _tensors_text,
        }
        if not arg:
            self._put("\n".join(f"info {name}" for name in table))
            return
        fitting = [name for name in table if name.startswith(arg)]
        if len(fitting) != 1:
            problem = f"{arg!r} is none of {', '.join(table)}"
            raise error("D039", command="info", problem=problem)
        self._put(table[fitting[0]](self.session))

    def do_registers(self, arg: str) -> None:
        """Scalar registers and masks of the wave that is shown; those that are named."""
        if arg:
            self.do_print(arg)
        else:
            self._put(views.registers_text(self.session))

    # Values

    def do_print(self, arg: str) -> None:
        """Registers v3, v[0:3], a5, s[4:5], exec, vcc, scc, m0, pc; tensors.

        FORMAT: hex (the default), f32, f16, bf16, i32, ... A tensor may have an index: x[3, 0:8].
        """
        words = arg.rsplit(maxsplit=1)
        has_format = len(words) == 2 and words[1] in FORMATS
        self._put(self.reader.print(*(words if has_format else [arg])))

    def do_x(self, arg: str) -> None:
        """Global memory: x s[4:5]+64 f16 8x32."""
        address, format_name, shape = self._memory_words("x", arg)
        begin = self.reader.address(address)
        size = self._size(format_name, shape)
        data = self.session.controlled().memory(begin, size)
        self._put(f"0x{begin:x}:")
        self._put(self.reader.memory_text(data, format_of(format_name), shape))

    def do_lds(self, arg: str) -> None:
        """The workgroup's LDS: lds 0x0 f16 32x32."""
        offset, format_name, shape = self._memory_words("lds", arg)
        group = self.session.focused().group
        size = self._size(format_name, shape)
        data = self.session.controlled().local(group, self.reader.address(offset), size)
        self._put(self.reader.memory_text(data, format_of(format_name), shape))

    def do_scratch(self, arg: str) -> None:
        """Private memory of the lane that is shown."""
        offset, format_name, shape = self._memory_words("scratch", arg)
        focus = self.session.focused()
        place = (focus.group, focus.wave, focus.lane, self.reader.address(offset))
        data = self.session.controlled().scratch(*place, self._size(format_name, shape))
        self._put(self.reader.memory_text(data, format_of(format_name), shape))

    def _memory_words(self, command: str, arg: str) -> tuple[str, str, tuple[int, ...]]:
        """Read an address, a format and a shape."""
        words = arg.split()
        shape: tuple[int, ...] = (1,)
        if len(words) > 1 and words[-1][0].isdigit():
            shape = parse_shape(words.pop())
        format_name = words.pop() if len(words) > 1 and words[-1] in FORMATS else "hex"
        if not words:
            raise error("D039", command=command, problem="an address is missing")
        return " ".join(words), format_name, shape

    def _size(self, format_name: str, shape: tuple[int, ...]) -> int:
        size = format_of(format_name).dtype().itemsize
        for extent in shape:
            size *= extent
        return size

    def do_dist(self, arg: str) -> None:
        """Show which lane and register hold each element of a matrix operand, or of a tensor.

        D, A or B: of the matrix instruction at a pc, or of the present or next one. Registers, such
        as v[4:5] f16: which elements of the op's tensors each lane holds, found by their values.
        """
        words = arg.split()
        which = parse_registers(words[0]) if words else None
        if which is None:
            where, operand = self._matrix_words(arg)
            self._put(views.layout_text(views.matrix_at(self.session, where), operand))
            return
        format_ = format_of(words[1] if len(words) > 1 else "f32")
        tensors = {name: self.reader.tensor(name) for name in self.session.tensors()}
        self._put(origins_text(decoded(self.reader.registers(which), format_), tensors))

    def do_tile(self, arg: str) -> None:
        """The values of a matrix operand, as a matrix."""
        where, operand = self._matrix_words(arg)
        instruction = views.matrix_at(self.session, where)
        self._put(views.tile_text(self.reader, instruction, operand))

    def do_who(self, arg: str) -> None:
        """The lane and register that hold one element."""
        words = arg.split()
        if len(words) < 2 or not all(word.isdigit() for word in words[:2]):
            raise error("D039", command="who", problem="it needs a row and a column")
        where, operand = self._matrix_words(" ".join(words[2:]))
        instruction = views.matrix_at(self.session, where)
        self._put(views.who_text(instruction, operand, int(words[0]), int(words[1])))

    def _matrix_words(self, arg: str) -> tuple[str, str]:
        words = arg.split()
        where = next((word for word in words if word.startswith("*")), "")
        return where, next((word for word in words if not word.startswith("*")), "D")

    # The end

    def do_kill(self, arg: str) -> None:
        """End the program."""
        self.session.close()

    def do_quit(self, arg: str) -> bool:
        """End the program and the debugger."""
        self.session.close()
        return True

    def do_EOF(self, arg: str) -> bool:  # noqa: N802
        """End of the input."""
        self._put("")
        return self.do_quit(arg)


def _tensors_text(session: Session) -> str:
    rows = [
        f"{name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}] at 0x{tensor.address:x}"
        for name, tensor in session.tensors().items()
    ]
    return "\n".join(rows) or "the program has named no tensors"
