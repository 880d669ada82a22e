"""What the built-in classes of JavaScript share: constructors, truth, equality, positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from emulator.runtime.pyproxy import PyProxy
from emulator.values import (
    UNDEFINED,
    BigInt,
    Function,
    JsException,
    to_number,
)

Method = Callable[..., Any]


class Constructor(Function):
    """A JavaScript class: `Map.new(...)` in Python, `Map.groupBy` and the like as statics."""

    def __init__(
        self,
        name: str,
        construct: Method,
        *,
        statics: dict[str, Any] | None = None,
        call: Method | None = None,
    ) -> None:
        super().__init__(call or self._refuse, name, raw=True)
        self.construct = construct
        self.statics = statics or {}

    def _refuse(self, *args: Any) -> Any:
        raise JsException("TypeError", f"Constructor {self.name} requires 'new'")


class Properties(list[Any]):
    """An array with properties besides its elements, such as the result of `RegExp.exec`."""

    __slots__ = ("named",)

    def __init__(self, values: Any, named: dict[str, Any]) -> None:
        super().__init__(values)
        self.named = named


def function(name: str, call: Method) -> Function:
    """Return a built-in function, which gets JavaScript values."""
    return Function(call, name, raw=True)


def functions(**calls: Method) -> dict[str, Any]:
    """Return built-in functions by name; that of `from_` is `from`."""
    return {name.rstrip("_"): function(name.rstrip("_"), call) for name, call in calls.items()}


def truthy(value: Any) -> bool:
    """JavaScript's truth: empty text, 0, NaN, null and undefined are false; every object true."""
    if value is None or value is UNDEFINED or value is False:
        return False
    if isinstance(value, BigInt):
        return value.value != 0
    return bool(value) and value == value if isinstance(value, (str, int, float)) else True


_PRIMITIVE: Final = (str, int, float, BigInt)


def same(left: Any, right: Any) -> bool:
    """`===`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (*_PRIMITIVE, PyProxy)):
        return bool(left == right)
    return left is right


def same_or_nan(left: Any, right: Any) -> bool:
    """Whether a Map or `includes` takes two values for the same: NaN is NaN."""
    if same(left, right):
        return True
    return isinstance(left, float) and isinstance(right, float) and left != left and right != right


def integer(value: Any, default: float = 0) -> float:
    """Return the integer that an argument means (`ToIntegerOrInfinity`)."""
    if value is UNDEFINED:
        return default
    number = to_number(value)
    if number != number:
        return 0
    return number if number in (float("inf"), -float("inf")) else int(number)


def clip(index: Any, length: int, default: int) -> int:
    """Return a relative index as `slice` and friends take it."""
    whole = integer(index, default)
    return int(max(whole + length, 0) if whole < 0 else min(whole, length))


def reached(index: Any, length: int, *, wraps: bool = True) -> int | None:
    """Return the place that an index means, None outside; with `wraps` -1 is the last one."""
    place = integer(index)
    place += length if wraps and place < 0 else 0
    return int(place) if 0 <= place < length else None


def is_number(value: Any) -> bool:
    """Whether a value is a number, as `typeof` has it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_callable(value: Any) -> bool:
    """Whether JavaScript can call a value."""
    return isinstance(value, Function) or (isinstance(value, PyProxy) and callable(value.obj))
