"""The view of R2: buckets, their objects in order, bodies; and deleting them.

A bucket is named by its name in the service, not by a binding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from emulator.r2.store import Place
from emulator.server.dashboard.endpoints import acts, reads
from emulator.server.dashboard.shown import BRIEF, octets_text, time_text, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from emulator.r2.control import R2Control
    from emulator.r2.store import Bucket, Stored
    from emulator.secrets import Masker
    from emulator.server.dashboard.endpoints import Answer, Asked
    from emulator.server.desk import Desk

_SHOWN: Final = 200_000  # bytes of a body


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """Return the endpoints of R2."""
    return [
        reads(desk, "/r2", _buckets),
        reads(desk, "/r2/objects", _objects),
        reads(desk, "/r2/body", _body),
        acts(desk, "/r2/delete", _delete),
    ]


def _buckets(desk: Desk, asked: Asked) -> Answer:
    names: dict[str, list[str]] = {}
    for name, id in desk.platform.r2.names.items():
        names.setdefault(id, []).append(name)
    return {
        "buckets": [
            {
                "name": id,
                "names": of,
                "total": len(bucket.objects),
                "size": sum(one.size for one in bucket.objects.values()),
                "uploads": sum(not one.ended for one in bucket.uploads.values()),
            }
            for id, of in names.items()
            for bucket in (desk.platform.r2.bucket(id),)
        ]
    }


def _bucket(desk: Desk, asked: Asked) -> Bucket:
    name, r2 = asked.text("bucket"), desk.platform.r2
    if name not in r2.names.values():
        raise KeyError(f"there is no R2 bucket {name!r}")
    return r2.bucket(name)


def _objects(desk: Desk, asked: Asked) -> Answer:
    bucket, masker = _bucket(desk, asked), desk.platform.kernel.trace.masker
    after = asked.text("after", "")
    place = Place(asked.text("prefix", ""), "", after or None)
    page = bucket.page(place, asked.part()[1])
    return {
        "bucket": asked.text("bucket"),
        "total": len(bucket.objects),
        "last": page.last,
        "objects": [_row(one, masker) for one in page.objects],
    }


def _row(one: Stored, masker: Masker) -> Answer:
    about: dict[str, Any] = {**one.metadata.http, **one.metadata.custom}
    return {
        "key": one.key,
        "size": one.size,
        "etag": one.etag,
        "uploaded": time_text(one.uploaded * 1_000),
        "metadata": value_text(about, masker, most=BRIEF) if about else None,
    }


def _body(desk: Desk, asked: Asked) -> Answer:
    found = _bucket(desk, asked).get(asked.text("key"))
    if found is None:
        raise KeyError("there is no such object any more")
    masker = desk.platform.kernel.trace.masker
    data = desk.platform.r2.bodies.read(found.parts, 0, min(found.size, _SHOWN))
    return {"body": octets_text(data, masker, size=found.size, most=_SHOWN)}


async def _delete(desk: Desk, asked: Asked) -> Answer:
    _bucket(desk, asked)
    bucket, key = asked.text("bucket"), asked.text("key")
    names = (name for name, of in desk.platform.r2.names.items() if of == bucket)
    control: R2Control = desk.emulator.r2[next(names)]
    await desk.act("delete", lambda: control.delete(key))
    return {}
