"""JSON bodies and query parameters, checked; the texts are those of zod, which the API shows.

Of these texts `Required at "body"` and `Expected object, received string at "body"`, with code
10207, have been seen; the others are in their manner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.runtime.web.text import well_formed
from emulator.server.rest.answers import ApiError, Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.datastructures import QueryParams

    from emulator.server.rest.calls import Call

INVALID: Final = 10207
_MOST_A_PAGE: Final = 1000
MISSING: Final = object()


def invalid(text: str) -> ApiError:
    """What is wrong with a body."""
    return ApiError(400, INVALID, text)


class Fields:
    """The members of a JSON object; `at` is where it stands in the body, for messages.

    Null is as good as nothing, and members that nobody asks for are ignored.
    """

    def __init__(self, value: Any, at: str = "") -> None:
        if not isinstance(value, dict):
            raise _wrong("object", value, at)
        self.values: Mapping[str, Any] = value
        self._at = at

    def path(self, name: str) -> str:
        """Where a member stands."""
        return f"{self._at}.{name}" if self._at else name

    def _get(self, name: str, *, required: bool) -> Any:
        value = self.values.get(name, MISSING)
        if value is None or value is MISSING:
            if required:
                raise invalid(f'Required at "{self.path(name)}"')
            return None
        return value

    def text(self, name: str, *, required: bool = False) -> str | None:
        """A member that is a text; as UTF-8 has it, so that half a surrogate pair is U+FFFD."""
        value = self._get(name, required=required)
        if value is not None and not isinstance(value, str):
            raise _wrong("string", value, self.path(name))
        return None if value is None else well_formed(value)

    def boolean(self, name: str, *, required: bool = False) -> bool | None:
        """A member that is true or false."""
        value = self._get(name, required=required)
        if value is not None and not isinstance(value, bool):
            raise _wrong("boolean", value, self.path(name))
        return value

    def number(self, name: str, low: int, high: int, *, required: bool = False) -> int | None:
        """A member that is a whole number in a range, its ends included."""
        value = self._get(name, required=required)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong("number", value, self.path(name))
        if value != int(value):
            raise _wrong("integer", value, self.path(name), "float")
        if not low <= value <= high:
            side = (
                f"less than or equal to {high}"
                if value > high
                else f"greater than or equal to {low}"
            )
            raise invalid(f'Number must be {side} at "{self.path(name)}"')
        return int(value)

    def choice(self, name: str, allowed: Sequence[str], default: str | None = None) -> str:
        """A member that is one of a few texts."""
        value = self._get(name, required=default is None)
        if value is None:
            assert default is not None
            return default
        if value not in allowed:
            known = " | ".join(f"'{item}'" for item in allowed)
            raise invalid(
                f"Invalid enum value. Expected {known}, received '{value}' at \"{self.path(name)}\""
            )
        return str(value)

    def fields(self, name: str, *, required: bool = False) -> Fields | None:
        """A member that is an object."""
        value = self._get(name, required=required)
        return None if value is None else Fields(value, self.path(name))

    def items(self, name: str, *, required: bool = False) -> list[Fields]:
        """A member that is a list of objects."""
        value = self._get(name, required=required)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _wrong("array", value, self.path(name))
        return [Fields(item, f"{self.path(name)}.{index}") for index, item in enumerate(value)]


def body(call: Call, *, empty: bool = False) -> Fields:
    """The JSON object that a request has as its body; with `empty` there need not be one."""
    if empty and not call.body.strip():
        return Fields({})
    return Fields(call.json())


def whole(query: QueryParams, name: str, default: int, most: int) -> int:
    """A whole number from 1 of the query."""
    given = query.get(name)
    if given is None:
        return default
    try:
        number = float(given)  # the official client writes 2 as 2.0 at times
    except ValueError:
        raise invalid(f'Expected number, received nan at "{name}"') from None
    if number != number or not 1 <= number <= most:
        raise invalid(f'Number must be between 1 and {most} at "{name}"')
    return int(number)


def paged(items: Sequence[Any], query: QueryParams, *, per_page: int) -> Page:
    """The part of a list that `page` and `per_page` ask for; nothing behind its end."""
    page = whole(query, "page", 1, 2**31)
    size = whole(query, "per_page", per_page, _MOST_A_PAGE)
    part = items[(page - 1) * size : page * size]
    return Page(part, info(part, page, size, len(items)))


def info(part: Sequence[Any], page: int, per_page: int, total: int) -> dict[str, Any]:
    """What `result_info` says of a part of a list."""
    return {
        "page": page,
        "per_page": per_page,
        "count": len(part),
        "total_count": total,
        "total_pages": -(-total // per_page),
    }


def kind_of(value: Any) -> str:
    """What zod calls a value of JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "number"


def _wrong(wanted: str, value: Any, at: str, got: str | None = None) -> ApiError:
    where = f' at "{at}"' if at else ""
    return invalid(f"Expected {wanted}, received {got or kind_of(value)}{where}")
