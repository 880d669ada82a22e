"""Letting go of what power cuts froze, without a line of it running.

What a dead isolate left behind is pinned for the life of the process (immortal.py), some 40 KiB a
cut, and a sweep cuts power thousands of times. Between its runs nobody wants any of it.

CPython calls the finalizer of an object once: in the object's header, which the garbage collector
keeps, it marks that it did. `let_go` sets this mark on everything with a finalizer that the pinned
objects lead to: suspended coroutines and generators, whose finalizer runs their `finally`, and
objects with `__del__`. Then it takes the pins back, and all of it goes away in silence.

Rules:

1. What is looked at is a young generation of the collector's, which holds all that was made in the
   run: the rest is older, and others hold it.
2. Where a weak reference among it would call user code, all stays pinned.
3. Greenlets stay pinned, since to collect a suspended one runs its `finally`; so do objects with
   `__del__` that have no such header.
4. So does everything on a Python whose headers are not known here (newer than 3.13).
5. Looking at an object runs no code of its own: classes may define anything.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import sysconfig
import weakref
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

import greenlet

from emulator import immortal
from emulator.location import is_users

if TYPE_CHECKING:
    from collections.abc import Sequence

_unpin = ctypes.pythonapi.Py_DecRef
_unpin.argtypes = [ctypes.py_object]
_unpin.restype = None

KNOWN: Final = (
    sys.implementation.name == "cpython"
    and sys.version_info[:2] <= (3, 13)
    and not sysconfig.get_config_var("Py_GIL_DISABLED")
)
"""Whether this Python's headers are known: two words before an object, the mark in the second."""

# What a class is made of, whatever it or its metaclass says of these names: none of it may run.
_bases_of: Any = vars(type)["__mro__"].__get__
_members_of: Any = vars(type)["__dict__"].__get__
_flags_of: Any = vars(type)["__flags__"].__get__

_WORD: Final = ctypes.sizeof(ctypes.c_size_t)
_FINALIZED: Final = 1
_HAS_HEADER: Final = 1 << 14  # Py_TPFLAGS_HAVE_GC


def let_go(pinned: Sequence[object], *, generation: int) -> bool:
    """Take the pins of these objects back; false if they have to stay.

    All that was made in their runs has to be in the generation of the collector's of this number.
    """
    if not KNOWN:
        return False
    reached = _reach(pinned, frozenset(map(id, gc.get_objects(generation=generation))))
    # By identity, since a class may have a hash of its own.
    kinds = {id(kind): kind for kind in map(type, reached.values())}
    references = {key: None for key, kind in kinds.items() if issubclass(kind, weakref.ref)}
    if any(_calls_user_code(one) for one in reached.values() if id(type(one)) in references):
        return False
    for finalizer, info in list(immortal.finalizers.items()):
        if id(info.weakref()) in reached:
            finalizer.detach()
    finalized = {key: None for key, kind in kinds.items() if _has_finalizer(kind)}
    for one in reached.values():
        if id(type(one)) in finalized:
            _disarm(one)
    for one in pinned:
        if not isinstance(one, greenlet.greenlet):
            _unpin(one)
    return True


def _reach(pinned: Sequence[object], young: frozenset[int]) -> dict[int, Any]:
    """What these objects lead to, by identity, among what is young."""
    reached: dict[int, Any] = {}
    layer = {id(one): one for one in pinned}
    leads_on: dict[int, bool] = {}
    while layer:
        reached |= layer
        found = {}
        for other in gc.get_referents(*layer.values()):
            key = id(other)
            if key in reached:
                continue
            if key not in young:
                # The collector does not know what can be in no circle, such as a dict of texts.
                kind = type(other)
                if id(kind) not in leads_on:
                    leads_on[id(kind)] = kind is dict or kind is tuple or _has_finalizer(kind)
                if not leads_on[id(kind)] or gc.is_tracked(other):
                    continue
            found[key] = other
        layer = found
    return reached


def _has_finalizer(kind: type) -> bool:
    return any("__del__" in _members_of(base) for base in _bases_of(kind))


def _disarm(one: object) -> None:
    """Let an object with a finalizer pass for one whose finalizer was called."""
    if not _flags_of(type(one)) & _HAS_HEADER:
        immortal.pin(one)
        return
    header = ctypes.c_size_t.from_address(id(one) - _WORD)
    header.value |= _FINALIZED
    if not gc.is_finalized(one):  # Nothing is known of this Python after all.
        raise RuntimeError(f"CPython {sys.version} keeps its marks elsewhere than remains.py says")


def _calls_user_code(reference: weakref.ref[Any]) -> bool:
    """Whether user code is called when what is referred to goes away."""
    callback: Any = reference.__callback__
    while type(callback) in (partial, MethodType):
        callback = callback.func if type(callback) is partial else callback.__func__
    if callback is None or type(callback) is BuiltinFunctionType:
        return False
    return type(callback) is not FunctionType or is_users(callback.__code__)
