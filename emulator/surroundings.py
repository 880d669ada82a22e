"""What the process looks like to code inside the simulation.

While Worker code runs, `os.urandom` (and with it `uuid4` and `secrets`) comes from the emulator's
seeded stream, `time.monotonic` and `time.perf_counter` follow virtual time, and `atexit` is deaf to
user code, because a Worker has no exit. The state of `random` belongs to the emulator from its
first run until it is closed, because `from random import choice` cannot be told apart later; saving
it at each switch would cost more than a request.

The replacements are functions of this module that ask who is inside: a library that is imported
inside for the first time (`from time import monotonic`) keeps one for the life of the process.
"""

from __future__ import annotations

import atexit
import os
import random
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

from emulator.location import is_users
from emulator.scope import SCOPE

if TYPE_CHECKING:
    from collections.abc import Callable

    from emulator.clock import Clock

_F = TypeVar("_F")

# The simulations that run, innermost last.
_inside: list[Surroundings] = []
# Whose state `random` has now, and the state it had before any emulator.
_owner: list[Surroundings] = []
_outer_state: list[Any] = []

_hidden: Any = random._inst  # whose methods `random`'s functions are
_real_random, _real_getrandbits = random.random, random.getrandbits
_real_seed = random.Random.seed
_real_urandom, _real_register = os.urandom, atexit.register
_real_monotonic, _real_monotonic_ns = time.monotonic, time.monotonic_ns
_real_perf_counter, _real_perf_counter_ns = time.perf_counter, time.perf_counter_ns


def _read(what: str) -> Surroundings:
    scope = SCOPE.get()
    if scope is not None:
        scope.reads(what)
    return _inside[-1]


def _urandom(size: int) -> bytes:
    return _read("randomness").urandom(size) if _inside else _real_urandom(size)


def _monotonic() -> float:
    return _read("the clock").elapsed / 1_000_000 if _inside else _real_monotonic()


def _monotonic_ns() -> int:
    return _read("the clock").elapsed * 1000 if _inside else _real_monotonic_ns()


def _perf_counter() -> float:
    return _read("the clock").elapsed / 1_000_000 if _inside else _real_perf_counter()


def _perf_counter_ns() -> int:
    return _read("the clock").elapsed * 1000 if _inside else _real_perf_counter_ns()


def _random() -> float:
    if _inside:
        _read("randomness")
    return _real_random()


def _getrandbits(bits: int) -> int:
    if _inside:
        _read("randomness")
    return _real_getrandbits(bits)


def _seed(generator: random.Random, value: Any = None, version: int = 2) -> None:
    if value is None and _inside:
        value = int.from_bytes(_urandom(32), "big")
    _real_seed(generator, value, version)


class _Told(random.Random):
    """The generator behind `random`'s functions, telling of each use."""

    def random(self) -> float:
        return _random()

    def getrandbits(self, bits: int, /) -> int:
        return _getrandbits(bits)


def _register(function: Callable[..., _F], *args: Any, **options: Any) -> Callable[..., _F]:
    if _inside and is_users(sys._getframe(1).f_code):
        return function
    return _real_register(function, *args, **options)


_VIRTUAL = (
    _urandom,
    _urandom,
    _random,
    _getrandbits,
    _seed.__get__(_hidden),
    _register,
    _monotonic,
    _monotonic_ns,
    _perf_counter,
    _perf_counter_ns,
)


class Surroundings:
    """Seeded randomness and virtual monotonic time of one emulator."""

    def __init__(self, clock: Clock, seed: int) -> None:
        self._clock = clock
        self._saved: tuple[Any, ...] | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start both streams of random values again."""
        self._bytes = random.Random(f"bytes {seed}")
        self._state: Any = random.Random(f"random {seed}").getstate()
        if self in _owner:
            random.setstate(self._state)

    def urandom(self, size: int) -> bytes:
        """What `os.urandom` answers inside."""
        return self._bytes.randbytes(size)

    @property
    def elapsed(self) -> int:
        """Virtual time since the start, in microseconds."""
        return self._clock.now - self._clock.start

    def enter(self) -> None:
        """Called when the simulation starts to run."""
        if not _owner or _owner[0] is not self:
            self._own_random()
        _inside.append(self)
        self._saved = (
            os.urandom,
            random._urandom,  # type: ignore[attr-defined]
            random.random,
            random.getrandbits,
            random.seed,
            atexit.register,
            time.monotonic,
            time.monotonic_ns,
            time.perf_counter,
            time.perf_counter_ns,
        )
        _replace(*_VIRTUAL)

    def leave(self) -> None:
        """Called when the simulation stops."""
        if self._saved is None:
            return
        _replace(*self._saved)
        self._saved = None
        _inside.remove(self)
        if _inside:
            # Another simulation's mock used this one, and goes on.
            _inside[-1]._own_random()

    def close(self) -> None:
        """Give `random` back."""
        if self in _owner:
            _owner.clear()
            _replace_classes(random.Random, _real_seed)
            random.setstate(_outer_state.pop())

    def _own_random(self) -> None:
        if _owner:
            _owner.pop()._state = random.getstate()
        else:
            _outer_state.append(random.getstate())
            _replace_classes(_Told, _seed)
        random.setstate(self._state)
        _owner.append(self)


def _replace_classes(generator: type, seed: Any) -> None:
    _hidden.__class__ = generator
    random.Random.seed = seed  # type: ignore[method-assign]


def _replace(
    urandom: Any,
    seeding: Any,
    number: Any,
    getrandbits: Any,
    seed: Any,
    register: Any,
    monotonic: Any,
    monotonic_ns: Any,
    perf_counter: Any,
    perf_counter_ns: Any,
) -> None:
    # One by one, and not by a table: this is done twice in each run of the simulation.
    os.urandom = urandom
    random._urandom = seeding  # type: ignore[attr-defined]
    random.random = number
    random.getrandbits = getrandbits
    random.seed = seed
    atexit.register = register
    time.monotonic = monotonic
    time.monotonic_ns = monotonic_ns
    time.perf_counter = perf_counter
    time.perf_counter_ns = perf_counter_ns
