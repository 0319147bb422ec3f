# SPDX-License-Identifier: MIT
"""Named sets of kernels that calls may be served by.

A registry holds declarations: the key of a kernel of any family, the functions that fill its
stencil, and a priority. Building one makes the code objects; what is built stands in the kernel
cache, not here, so a registry can be exported to JSON, imported in another process and built again,
and is then the same (:meth:`Registry.same_as`).

There is one rule of priority, for adding and for merging: of two entries with one key the one of
higher priority stays; at equal priority the one that was there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from cklang import forks
from cklang.codec import decode, expect_fields, expect_object, unknown
from cklang.errors import error
from cklang.families import FAMILIES, completed_key, family_of, key_from_json, key_of
from cklang.fusion.functions import Functions
from cklang.memo import BoundedMemo

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    from cklang.build.parallel import BuildSummary
    from cklang.device.resources import Resources
    from cklang.families.grid import Pattern
    from cklang.keys import AnyKey, KernelSignature

SCHEMA_VERSION = 3
"""Version of the JSON form."""

_MOST_DERIVED = 4096
"""Values that a registry keeps of what is derived from its kernels."""

Derived = TypeVar("Derived")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A declared kernel."""

    key: AnyKey
    functions: Functions
    """The user's functions, whose digest stands in the key."""
    priority: int = 0
    """Kernels of higher priority are preferred by ``first_fit``."""


class Registry:
    """Declared kernels in the order in which they were added; safe to use from several threads.

    Args:
        name: What people call it; part of its JSON form.

    Example:
        >>> mine = ck.dispatch.Registry("mine")
        >>> mine.declare_profile("flash", "gfx942", dtypes=["f16"], heads=[64]) == len(mine) > 0
        True
        >>> kernel = next(iter(mine))
        >>> kernel.key.label
        'attention_f16_..._gfx942_...'
        >>> kernel.key in mine
        True
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._kernels: dict[str, Kernel] = {}
        self._resources: dict[str, Resources] = {}
        self._lock = forks.reentrant_lock()
        self.version = 0
        """A number that changes with the kernels and what is known of them; selections too."""
        self._derived: BoundedMemo[Hashable, Any] = BoundedMemo(_MOST_DERIVED)

    def resources(self, key: AnyKey) -> Resources | None:
        """Return the registers and LDS of a kernel, if :meth:`build` of this registry has built it.

        The cost model takes registers and LDS from there, and estimates those of other kernels.

        Example:
            >>> print(mine.resources(kernel.key))  # it is not built
            None
        """
        return self._resources.get(key.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the declarations; resources of kernels are read where these are built."""
        return Registry.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return f"<cklang registry {self.name!r}: {len(self)} kernels>"

    def __len__(self) -> int:
        return len(self._kernels)

    def __iter__(self) -> Iterator[Kernel]:
        with self._lock:
            return iter(tuple(self._kernels.values()))

    def __contains__(self, key: AnyKey) -> bool:
        return key.digest in self._kernels

    def same_as(self, other: Registry) -> bool:
        """Whether both have the same name, kernels and priorities, in the same order.

        ``==`` compares identity: two registries stay two, whatever they come to hold.

        Example:
            >>> mine.same_as(ck.dispatch.Registry.from_json(mine.to_json()))
            True
        """
        return self.name == other.name and tuple(self) == tuple(other)

    def derived(self, about: Hashable, make: Callable[[], Derived]) -> Derived:
        """Return what ``make`` gives for the kernels that are declared now.

        The value is kept, with the registry, until a kernel or what is known of one changes.

        ``make`` must depend on ``about`` and on this registry alone. If it gives None, that is not
        kept.
        """
        kept: Derived | None = self._derived.get(about)
        if kept is not None:
            return kept
        version = self.version
        value = make()
        with self._lock:
            if version == self.version:
                self._derived.put(about, value)
        return value

    def forget_choices(self) -> None:
        """Forget what was derived: a kernel that choices depend on has been built."""
        with self._lock:
            self._changed()

    def _changed(self) -> None:
        self.version += 1
        self._derived.clear()

    def add(self, key: AnyKey, functions: Functions, *, priority: int = 0) -> bool:
        """Declare one kernel; return whether it is new or has a higher priority than before.

        Args:
            key: Its identity.
            functions: The user's functions that it calls.
            priority: Against a kernel of the same key, and for ``first_fit``.

        Example:
            >>> mine.add(kernel.key, kernel.functions)  # it is there
            False
            >>> mine.add(kernel.key, kernel.functions, priority=1)
            True

        Raises:
            CkValueError: K007, the functions are not those of the key.
        """
        want, got = key.signature.functions, functions.digest
        if want != got:
            raise error("K007", label=key.label, want=want or "none", got=got or "none")
        return self._put(Kernel(key=key, functions=functions, priority=priority))

    def _put(self, kernel: Kernel) -> bool:
        digest = kernel.key.digest
        with self._lock:
            known = self._kernels.get(digest)
            if known is not None and known.priority >= kernel.priority:
                return False
            self._kernels[digest] = kernel
            self._changed()
            return True

    def declare(
        self,
        signature: KernelSignature,
        functions: Functions,
        gpu: str,
        among: Pattern | str | None = None,
        *,
        priority: int = 0,
    ) -> int:
        """Declare every legal kernel of a set, and return how many are new.

        Args:
            signature: What is computed.
            functions: The user's functions that its kernels call.
            gpu: The GPU: ``gfx942``.
            among: A pattern, whose ``*`` stand for all legal values; the name of a preset
                (``essential``, ``compute``...); the default preset if left out.
            priority: Of all of them.

        Example:
            >>> other = ck.dispatch.Registry("other")
            >>> key, functions = kernel.key, kernel.functions
            >>> among = ck.dispatch.attention_pattern(pipeline="qr", vector=8)
            >>> other.declare(key.signature, functions, "gfx942", among) == len(other) > 0
            True

        Raises:
            CkValueError: K001, there is no such preset; K023, the pattern is for another family;
                K008, no algorithm of the set is legal.
        """
        from cklang.selection.rules import candidates
        from cklang.selection.space import Pattern, enumerate_legal

        if isinstance(among, Pattern):
            algorithms: Iterable[Any] = enumerate_legal(signature, gpu, among)
        else:
            algorithms = candidates(signature, gpu, *([among] if among else []))
        keys = [key_of(signature, algorithm, gpu) for algorithm in algorithms]
        if not keys:
            raise error("K008", among=among, arch=gpu, signature=signature.words)
        return sum(self.add(key, functions, priority=priority) for key in keys)

    def declare_profile(
        self,
        name: str,
        gpu: str,
        *,
        dtypes: Sequence[str] | None = None,
        heads: Sequence[int] | None = None,
        priority: int = 0,
    ) -> int:
        """Declare every legal kernel of an attention profile, and return how many are new.

        A profile is what one kind of user needs: its signatures times tilings, and the kernels
        that combine, append and sum. Scores, masks and outputs that may be the user's are
        functions that change nothing: building the registry makes their stencils, from which
        kernels with other functions are linked.

        Args:
            name: ``flash``, ``pytorch``, ``aiter``, ``fp32``, ``fp8``, ``ck_default``.
            gpu: The GPU: ``gfx942``.
            dtypes: Names of the element types of q, k and v; all of the profile's if left out.
            heads: Head sizes of q that tilings hold; all if left out.
            priority: Of all of them.

        Example:
            >>> other = ck.dispatch.Registry("other")
            >>> new = other.declare_profile("pytorch", "gfx950", dtypes=["bf16"], heads=[128])
            >>> new == len(other) > 0
            True

        Raises:
            CkValueError: K001, there is no such profile; K004, there is no such GPU; K008, nothing
                of it is legal on the GPU.
        """
        from cklang.arch import arch

        kernels = tuple(FAMILIES["attention"].spelling.profile(name, arch(gpu), dtypes, heads))
        if not kernels:
            types = "any element type" if dtypes is None else ", ".join(dtypes)
            raise error("K008", among=f"the profile {name}", arch=gpu, signature=types)
        return sum(self.add(key, functions, priority=priority) for key, functions in kernels)

    def remove(self, key: AnyKey) -> bool:
        """Forget a kernel; return whether it was there.

        Example:
            >>> other = ck.dispatch.Registry("other")
            >>> other.add(kernel.key, kernel.functions), other.remove(kernel.key), len(other)
            (True, True, 0)
        """
        with self._lock:
            known = self._kernels.pop(key.digest, None) is not None
            if known:
                self._changed()
            return known

    def find(self, key: AnyKey) -> Kernel | None:
        """Return the kernel of ``key``, or None.

        Example:
            >>> mine.find(kernel.key) in tuple(mine)
            True
        """
        return self._kernels.get(key.digest)

    def filter(self, accept: Callable[[Any], bool]) -> tuple[Kernel, ...]:
        """Return the kernels whose key ``accept`` accepts, in order.

        Example:
            >>> combining = mine.filter(lambda key: key.family == "combine")
            >>> {kernel.key.family for kernel in combining}
            {'combine'}
        """
        return tuple(kernel for kernel in self if accept(kernel.key))

    def merge(self, other: Registry) -> int:
        """Add the kernels of ``other`` with their priorities; return how many changed anything.

        Example:
            >>> other = ck.dispatch.Registry("other")
            >>> other.merge(mine) == len(mine)
            True
            >>> other.merge(mine)  # nothing is new
            0
        """
        return sum(self._put(kernel) for kernel in other)

    def build(
        self, max_workers: int | None = None, executor: Executor | None = None
    ) -> BuildSummary:
        """Build every kernel that is not built, in parallel processes and with progress.

        Args:
            max_workers: Compiler processes at once (default: ``CKLANG_JOBS``, else the cores).
            executor: Runs the work instead: threads, processes or machines that share the cache.

        Returns:
            What became of each kernel; failures are in it and raise nothing. What the kernels take
            of the GPU is known from then on: see :meth:`resources`.

        Example:
            >>> summary = mine.build(max_workers=8)  # doctest: +SKIP
        """
        from cklang.build.parallel import build

        wanted = [(kernel.key, kernel.functions) for kernel in self]
        summary = build(wanted, max_workers=max_workers, executor=executor)
        resources = {artifact.key.digest: artifact.resources for artifact in summary.artifacts}
        with self._lock:
            if not resources.items() <= self._resources.items():
                self._resources |= resources
                self._changed()
        return summary

    def to_json(self) -> dict[str, Any]:
        """Return the lossless JSON form: every field of every key, and each function once.

        Example:
            >>> data = mine.to_json()
            >>> data["name"], len(data["kernels"]) == len(mine)
            ('mine', True)
        """
        kernels = tuple(self)
        texts = dict.fromkeys(text for k in kernels for text in k.functions.texts.values())
        places = {text: place for place, text in enumerate(texts)}
        return {
            "version": SCHEMA_VERSION,
            "name": self.name,
            "functions": list(texts),
            "kernels": [
                {
                    "key": k.key.to_json(),
                    "functions": {hole: places[text] for hole, text in k.functions.texts.items()},
                    "priority": k.priority,
                }
                for k in kernels
            ],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Registry:
        """Return a registry from JSON that :meth:`to_json` or a person wrote.

        Fields that are left out have their defaults: the present version, no name, the family
        ``gemm``, the defaults of the records of keys, a product's own epilogue, priority 0. Of the
        signature of a product the other element types are that of A, and the layouts ``rcr``.

        Example:
            >>> ck.dispatch.Registry.from_json(ck.dispatch.Registry("empty").to_json())
            <cklang registry 'empty': 0 kernels>
            >>> tiles = {"tile": [128, 128, 32], "warps": [2, 2, 1], "warp_tile": [32, 32, 16]}
            >>> algorithm = {**tiles, "vector_a": 8, "vector_b": 8, "vector_e": 8}
            >>> key = {"arch": "gfx942", "signature": {"dtype_a": "f16"}, "algorithm": algorithm}
            >>> ck.dispatch.Registry.from_json({"kernels": [{"key": key}]})
            <cklang registry '': 1 kernels>

        Raises:
            CkValueError: K003 for another schema version, K001, K002 and K026 for fields and values
                that are not known, K007 for functions that are not those of their key.
        """
        data = {**_LEFT_OUT, **expect_object("registry", data)}
        if data["version"] != SCHEMA_VERSION:
            raise error("K003", what="registry", got=data["version"], want=SCHEMA_VERSION)
        expect_fields("registry", data, tuple(_LEFT_OUT))
        texts = decode(tuple[str, ...], data["functions"], "registry functions")
        parsed = cache(lambda named: Functions.parse(dict(named)))
        registry = cls(decode(str, data["name"], "registry name"))
        for row in data["kernels"]:
            row = {**_ROW_LEFT_OUT, **expect_object("registry kernel", row)}
            expect_fields("registry kernel", row, ("key", *_ROW_LEFT_OUT))
            functions = None
            if row["functions"] is not None:
                holes = expect_object("registry kernel functions", row["functions"])
                named = {hole: _text(texts, place) for hole, place in holes.items()}
                functions = parsed(tuple(named.items()))
            priority = decode(int, row["priority"], "priority")
            key, functions = _kernel(expect_object("kernel key", row["key"]), functions)
            registry.add(key, functions, priority=priority)
        return registry


def _kernel(data: dict[str, Any], functions: Functions | None) -> tuple[AnyKey, Functions]:
    """Return a key and its functions from JSON in which fields may be left out."""
    says_functions = "functions" in expect_object("signature", data.get("signature", {}))
    key = key_from_json(completed_key(data))
    if functions is None:
        functions = family_of(key.signature).spelling.plain_functions(key.signature)
    if functions is None:
        raise unknown("missing registry kernel field", "functions", ["key", *_ROW_LEFT_OUT])
    if not says_functions and key.signature.functions != functions.digest:
        key = replace(key, signature=replace(key.signature, functions=functions.digest))
    return key, functions


def _text(texts: tuple[str, ...], place: object) -> str:
    if not isinstance(place, int) or not 0 <= place < len(texts):
        raise error("K026", got=place, count=len(texts))
    return texts[place]


_LEFT_OUT: Mapping[str, Any] = {
    "version": SCHEMA_VERSION,
    "name": "",
    "functions": (),
    "kernels": (),
}
_ROW_LEFT_OUT: Mapping[str, Any] = {"functions": None, "priority": 0}
"""What fields are that a registry leaves out."""
