"""`crypto.subtle` gives what workerd gives, errors included (see `probes.py`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import js
import pytest
from probes import GROUPS, Probes, b, o, show, text, told, u
from pyodide.ffi import to_js
from workers import Response, WorkerEntrypoint

from emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.asyncio
RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text("utf-8"))


async def inside(work: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    """Run a coroutine in a Worker's fetch handler; returns its result as JSON."""

    async def fetch(self: Any, request: Any) -> Any:
        return Response.json(await work())

    cls = type("Default", (WorkerEntrypoint,), {"fetch": fetch})
    async with Emulator({"main": cls}, **options) as emulator:
        response = await emulator.fetch("/")
        assert response.status_code == 200, response.text
        return response.json()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
async def test_answers_are_workerds(group: Callable[[Probes], Awaitable[None]]) -> None:
    async def work() -> Any:
        answers = Probes()
        await group(answers)
        return answers

    answers = await inside(work)
    assert answers
    assert answers == {name: RECORDED.get(name) for name in answers}


async def test_keys_and_signatures_follow_from_the_seed() -> None:
    """All but the salts of RSA-PSS and the padding of RSA-OAEP."""

    async def work() -> Any:
        s = js.crypto.subtle
        found = []
        for how, use in (
            (o(name="HMAC", hash="SHA-256"), "sign"),
            (o(name="AES-GCM", length=256), "encrypt"),
        ):
            key = await s.generateKey(how, True, u(use))
            found.append(show(await s.exportKey("raw", key)))
        rsa = o(
            name="RSASSA-PKCS1-v1_5",
            hash="SHA-256",
            modulusLength=1024,
            publicExponent=to_js(b"\1\0\1"),
        )
        for how, sign in (
            (rsa, "RSASSA-PKCS1-v1_5"),
            (o(name="ECDSA", namedCurve="P-384"), o(name="ECDSA", hash="SHA-384")),
            ("Ed25519", "Ed25519"),
        ):
            pair = await s.generateKey(how, True, u("sign"))
            found.append(show(await s.exportKey("pkcs8", pair.privateKey)))
            found.append(show(await s.sign(sign, pair.privateKey, b(3))))
        return found

    first, again = await inside(work, seed=1), await inside(work, seed=1)
    other = await inside(work, seed=2)
    assert first == again
    assert all(mine != theirs for mine, theirs in zip(first, other, strict=True))


@pytest.mark.parametrize("form", ["jwk", "pkcs8"])
@pytest.mark.parametrize(
    ("name", "more", "use"),
    [
        ("RSASSA-PKCS1-v1_5", {"hash": "SHA-512"}, "sign"),
        ("ECDSA", {"namedCurve": "P-521"}, "sign"),
        ("ECDH", {"namedCurve": "P-256"}, "deriveBits"),
        ("Ed25519", {}, "sign"),
        ("X25519", {}, "deriveBits"),
    ],
)
async def test_private_keys_survive_a_round_trip(name: str, more: Any, use: str, form: str) -> None:
    async def work() -> Any:
        s = js.crypto.subtle
        made = {**more, "modulusLength": 1024, "publicExponent": to_js(b"\1\0\1")}
        pair = await s.generateKey(o(name=name, **made), True, u(use))
        data = await s.exportKey(form, pair.privateKey)
        key = await s.importKey(form, data, o(name=name, **more), True, u(use))
        jwk = await s.exportKey("jwk", key)
        private = ("d", "p", "q", "dp", "dq", "qi", "key_ops")
        public = o(**{name: v for name, v in jwk.to_py().items() if name not in private})
        again = await s.importKey("jwk", public, o(name=name, **more), True, u())
        spki = await s.exportKey("spki", again)
        first = show(await s.exportKey("pkcs8", key))
        second = show(await s.exportKey("pkcs8", pair.privateKey))
        return [
            first == second,
            show(spki) == show(await s.exportKey("spki", pair.publicKey)),
            show(key)["alg"] == show(pair.privateKey)["alg"],
        ]

    assert await inside(work) == [True, True, True]


async def test_what_python_forgets_to_convert_is_refused_as_in_production() -> None:
    """A Python list or bytes is a proxy, and neither an Array nor a buffer."""

    async def work() -> Any:
        s = js.crypto.subtle
        return [
            await told(lambda: s.digest("SHA-256", b"x")),
            await told(lambda: s.importKey("raw", b(16), "AES-GCM", True, ["encrypt"])),
            await told(lambda: s.importKey("raw", bytes(16), "AES-GCM", True, u("encrypt"))),
            # A dict's items are its properties, from Pyodide 0.28 on.
            show(await s.digest({"name": "SHA-1"}, text("x"))),
        ]

    failed = "TypeError: Failed to execute"
    assert await inside(work) == [
        f"{failed} 'digest' on 'SubtleCrypto': parameter 2 is not of type 'BufferSource'.",
        f"{failed} 'importKey' on 'SubtleCrypto': parameter 5 is not of type 'Array'.",
        "TypeError: Import data provided for buffer-based import formats must be a buffer source.",
        f"ab:{hashlib.sha1(b'x').hexdigest()}",
    ]


@pytest.mark.parametrize("profile", ["production", "miniflare"])
async def test_production_limits_iterations(profile: str) -> None:
    async def work() -> Any:
        s = js.crypto.subtle
        key = await s.importKey("raw", text("pw"), "PBKDF2", False, u("deriveBits"))
        how = o(name="PBKDF2", hash="SHA-256", salt=b(8), iterations=100_001)
        return await told(lambda: s.deriveBits(how, key, 256))

    answer = await inside(work, profile=profile)
    if profile == "miniflare":
        assert answer == "ab:90e223e22551050869c123e8db9c1d22b53a68dfd80e9bd0e7139dc767974521"
    else:
        assert answer == (
            "NotSupportedError: Pbkdf2 failed: iteration counts above 100000 are not supported "
            "(requested 100001)."
        )


async def test_constructors_are_illegal() -> None:
    async def work() -> Any:
        made = [await told(cls.new) for cls in (js.CryptoKey, js.Crypto, js.SubtleCrypto)]
        return [*made, js.crypto.constructor.name, js.crypto.subtle.constructor.name]

    assert await inside(work) == [
        *["TypeError: Illegal constructor"] * 3,
        *("Crypto", "SubtleCrypto"),
    ]
