# ruff: noqa: E731, B023 - a probe is a line: calls are lambdas, made and used in the same turn
"""What is asked of `crypto.subtle`, as it was asked of workerd: each probe by its name.

`recorded.json` has workerd's answers (1.20261117.1, run with the same probes in JavaScript).
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import js
from pyodide.ffi import to_js

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable

GARBAGE = bytes([7])


def b(size: int) -> Any:
    return to_js(GARBAGE * size)


def text(value: str) -> Any:
    return to_js(value.encode())


def o(**members: Any) -> Any:
    return to_js(members, dict_converter=js.Object.fromEntries)


def u(*usages: str) -> Any:
    return to_js(list(usages))


def show(value: Any) -> Any:
    """A result as the recording has it."""
    kind = getattr(getattr(value, "constructor", None), "name", "")
    if kind == "ArrayBuffer":
        return f"ab:{value.to_bytes().hex()}"
    if kind == "CryptoKey":
        return {
            "type": value.type,
            "ext": value.extractable,
            "alg": plain(value.algorithm),
            "usages": list(value.usages),
        }
    if hasattr(value, "publicKey"):
        return {"pub": show(value.publicKey), "priv": show(value.privateKey)}
    return value.to_py() if hasattr(value, "to_py") else value


def plain(value: Any) -> Any:
    found = value.to_py()
    return {
        name: f"u8:{bytes(item).hex()}" if isinstance(item, memoryview) else item
        for name, item in found.items()
    }


async def told(call: Callable[[], Any]) -> Any:
    try:
        value = call()
        return show(await value if inspect.isawaitable(value) else value)
    except JsException as error:
        return f"{error.name}: {error.message}"


class Probes(dict[str, Any]):
    """Answers by name."""

    async def ask(self, name: str, call: Callable[[], Any]) -> None:
        self[name] = await told(call)


async def hmac_and_digest(p: Probes) -> None:
    s = js.crypto.subtle
    x = text("x")
    await p.ask("dig", lambda: s.digest("sha-256", x))
    await p.ask("digObj", lambda: s.digest(o(name="SHA-1"), x))
    await p.ask("digBad", lambda: s.digest("SHA-3", x))
    await p.ask("digMd5", lambda: s.digest("md5", x))
    await p.ask("digNo", lambda: s.digest("SHA-256"))
    await p.ask("digStr", lambda: s.digest("SHA-256", "x"))
    sha = o(name="HMAC", hash="SHA-256")
    key = await s.importKey("raw", b(16), sha, True, u("sign", "verify"))
    p["hm"] = show(key)
    for name, form in (("hmJwk", "jwk"), ("hmRaw", "raw"), ("hmPk", "pkcs8"), ("hmBadFmt", "nope")):
        await p.ask(name, lambda form=form: s.exportKey(form, key))
    await p.ask("hmSign", lambda: s.sign("HMAC", key, x))
    await p.ask("hmSignObj", lambda: s.sign(o(name="hmac"), key, x))
    await p.ask("hmWrongAlg", lambda: s.sign("ECDSA", key, b(1)))
    raw = lambda data, how, may, *uses: lambda: s.importKey("raw", data, how, may, u(*uses))
    await p.ask("hmEmpty", raw(b(0), sha, True, "sign"))
    await p.ask("hmNoHash", raw(b(1), o(name="HMAC"), True, "sign"))
    await p.ask("hmNoHash2", raw(b(1), "HMAC", True, "sign"))
    await p.ask("hmBadUse", raw(b(1), sha, True, "encrypt"))
    await p.ask("hmNoUse", raw(b(1), sha, True))
    await p.ask("hmFmt", lambda: s.importKey("spki", b(1), sha, True, u("sign")))
    await p.ask("hmLen", raw(b(2), o(name="HMAC", hash="SHA-256", length=9), True, "sign"))
    await p.ask("hmLenBad", raw(b(2), o(name="HMAC", hash="SHA-256", length=20), True, "sign"))
    await p.ask("hmBadHash", raw(b(2), o(name="HMAC", hash="SHA-9"), True, "sign"))
    kept = await raw(b(1), sha, False, "sign")()
    await p.ask("hmNonExt", lambda: s.exportKey("raw", kept))
    await p.ask("hmNoVerify", lambda: s.verify("HMAC", kept, b(32), b(1)))
    await p.ask("hmGen", lambda: s.generateKey(sha, True, u("sign")))
    await p.ask("hmGen512", lambda: s.generateKey(o(name="HMAC", hash="SHA-512"), True, u("sign")))
    short = o(name="HMAC", hash="SHA-1", length=100)
    await p.ask("hmGenLen", lambda: s.generateKey(short, True, u("sign")))
    await p.ask("alg", raw(b(1), "NOPE", True))
    await p.ask("algX", lambda: s.generateKey("NOPE", True, u()))
    await p.ask("badUse", raw(b(16), "AES-GCM", True, "fly"))


async def aes_keys(p: Probes) -> None:
    s = js.crypto.subtle
    for name in ("AES-GCM", "AES-CBC", "AES-CTR", "AES-KW"):
        uses = u("wrapKey", "unwrapKey")
        if name != "AES-KW":
            uses = u("encrypt", "decrypt", "wrapKey", "unwrapKey")
        raw = lambda size, uses, name=name: lambda: s.importKey("raw", b(size), name, True, uses)
        make = lambda how, uses: lambda: s.generateKey(how, True, uses)
        await p.ask(f"{name}imp", raw(32, uses))
        await p.ask(f"{name}len", raw(15, uses))
        await p.ask(f"{name}nouse", raw(16, u()))
        await p.ask(f"{name}baduse", raw(16, u("sign")))
        key = await raw(16, uses)()
        await p.ask(f"{name}jwk", lambda key=key: s.exportKey("jwk", key))
        await p.ask(f"{name}gen", make(o(name=name, length=256), uses))
        await p.ask(f"{name}genlen", make(o(name=name, length=100), uses))
        await p.ask(f"{name}gennouse", make(o(name=name, length=128), u()))
        await p.ask(f"{name}gennolen", make(o(name=name), uses))


async def aes_modes(p: Probes) -> None:
    s = js.crypto.subtle
    hello = text("hello")
    both = u("encrypt", "decrypt")
    gcm = await s.importKey("raw", b(32), "AES-GCM", True, both)
    g = lambda **how: o(name="AES-GCM", **how)
    e = lambda how, data, key=gcm: lambda: s.encrypt(how, key, data)
    await p.ask("gcm", e(g(iv=b(12)), hello))
    await p.ask("gcmAd", e(g(iv=b(12), additionalData=b(3), tagLength=96), hello))
    await p.ask("gcmNoIv", e(g(), b(1)))
    await p.ask("gcmStr", e("AES-GCM", b(1)))
    await p.ask("gcmTag", e(g(iv=b(12), tagLength=33), b(1)))
    await p.ask("gcmIv0", e(g(iv=b(0)), b(1)))
    await p.ask("gcmTag32", e(g(iv=b(12), tagLength=32), b(1)))
    await p.ask("gcmBad", lambda: s.decrypt(g(iv=b(12)), gcm, b(20)))
    await p.ask("gcmShort", lambda: s.decrypt(g(iv=b(12)), gcm, b(3)))
    cbc = await s.importKey("raw", b(16), "AES-CBC", True, both)
    c = lambda size: o(name="AES-CBC", iv=b(size))
    await p.ask("cbc", e(c(16), hello, cbc))
    await p.ask("cbcIv", e(c(12), b(1), cbc))
    await p.ask("cbcBad", lambda: s.decrypt(c(16), cbc, b(16)))
    await p.ask("cbcLen", lambda: s.decrypt(c(16), cbc, b(15)))
    await p.ask("wrongKeyAlg", e(c(16), b(1)))
    ctr = await s.importKey("raw", b(16), "AES-CTR", True, both)
    r = lambda length, counter=None: o(
        name="AES-CTR", counter=b(16) if counter is None else counter, length=length
    )
    await p.ask("ctr", e(r(64), hello, ctr))
    await p.ask("ctrWrap", e(r(8, to_js(b"\xff" * 16)), b(40), ctr))
    await p.ask("ctrLen", e(r(0), b(1), ctr))
    await p.ask("ctrLen129", e(r(129), b(1), ctr))
    await p.ask("ctrCnt", e(r(64, b(15)), b(1), ctr))
    await p.ask("ctrBig", e(r(1), b(40), ctr))
    await p.ask("notKey", lambda: s.encrypt(g(iv=b(12)), o(), b(1)))
    only = await s.importKey("raw", b(16), "AES-GCM", True, u("encrypt"))
    await p.ask("usage", lambda: s.decrypt(g(iv=b(12)), only, b(1)))
    kw = await s.importKey("raw", b(16), "AES-KW", True, u("wrapKey", "unwrapKey"))
    wrapped = await s.wrapKey("raw", gcm, kw, "AES-KW")
    p["kw"] = show(wrapped)
    un = lambda data: lambda: s.unwrapKey("raw", data, kw, "AES-KW", "AES-GCM", True, u("encrypt"))
    await p.ask("unkw", un(wrapped))
    await p.ask("unkwBad", un(b(40)))
    await p.ask("kwEnc", lambda: s.encrypt("AES-KW", kw, b(16)))
    wg = await s.importKey("raw", b(16), "AES-GCM", True, u("wrapKey", "unwrapKey"))
    how = g(iv=b(12))
    as_jwk = await s.wrapKey("jwk", gcm, wg, how)
    await p.ask(
        "wrapJwk",
        lambda: s.unwrapKey("jwk", as_jwk, wg, how, "AES-GCM", True, u("encrypt")),
    )


async def derivation(p: Probes) -> None:
    s = js.crypto.subtle
    uses = u("deriveBits", "deriveKey")
    raw = lambda name, may, uses: lambda: s.importKey("raw", text("pw"), name, may, uses)
    pb, hk = await raw("PBKDF2", False, uses)(), await raw("HKDF", False, uses)()
    p["pb"] = show(pb)
    await p.ask("pbExt", raw("PBKDF2", True, u("deriveBits")))
    await p.ask("pbUse", raw("PBKDF2", False, u("sign")))
    await p.ask("hkExt", raw("HKDF", True, u("deriveBits")))

    def how(iterations: int = 1, **more: Any) -> Any:
        return o(name="PBKDF2", hash="SHA-256", iterations=iterations, **more)

    d = lambda how, length, key=pb: lambda: s.deriveBits(how, key, length)
    salt = b(8)
    await p.ask("pbBits", d(how(1000, salt=salt), 256))
    await p.ask("pb0", d(how(0, salt=salt), 256))
    await p.ask("pbLen", d(how(salt=salt), 7))
    await p.ask("pbNull", d(how(salt=salt), None))
    await p.ask("pbLen0", d(how(salt=salt), 0))
    await p.ask("pbNoSalt", d(how(), 256))
    key = lambda derived, *uses: lambda: s.deriveKey(how(salt=salt), pb, derived, True, u(*uses))
    await p.ask("pbKey", key(o(name="AES-GCM", length=256), "encrypt"))
    await p.ask("pbKeyH", key(o(name="HMAC", hash="SHA-256"), "sign"))
    h = lambda **more: o(name="HKDF", hash="SHA-256", salt=salt, **more)
    await p.ask("hkBits", d(h(info=b(2)), 256, hk))
    await p.ask("hkNoInfo", d(h(), 256, hk))
    await p.ask("hkLong", d(h(info=b(2)), 256 * 256 * 8, hk))
    await p.ask("hkNull", d(h(info=b(2)), None, hk))
    await p.ask("hkLen", d(h(info=b(2)), 7, hk))


async def rsa(p: Probes) -> None:
    s = js.crypto.subtle
    kinds = {
        "RSASSA-PKCS1-v1_5": ({}, ("sign", "verify")),
        "RSA-PSS": ({"saltLength": 20}, ("sign", "verify")),
        "RSA-OAEP": ({}, ("encrypt", "decrypt")),
    }
    for name, (more, uses) in kinds.items():
        base = {"name": name, "hash": "SHA-256", "modulusLength": 2048}
        base["publicExponent"] = to_js(b"\x01\x00\x01")
        make = lambda uses, base=base, **changed: (
            lambda: s.generateKey(o(**{**base, **changed}), True, u(*uses))
        )
        pair = await make(uses)()
        public, private = pair.publicKey, pair.privateKey
        p[name] = show(pair)
        await p.ask(f"{name}nouse", make(()))
        await p.ask(f"{name}baduse", make(("deriveKey",)))
        await p.ask(f"{name}exp", make(uses, publicExponent=to_js(b"\x01")))
        await p.ask(f"{name}mod", make(uses, modulusLength=100))
        await p.ask(f"{name}raw", lambda: s.exportKey("raw", public))
        await p.ask(f"{name}spkiPriv", lambda: s.exportKey("spki", private))
        await p.ask(f"{name}pk8Pub", lambda: s.exportKey("pkcs8", public))
        spki, pkcs8 = await s.exportKey("spki", public), await s.exportKey("pkcs8", private)
        is_oaep = name == "RSA-OAEP"
        get = lambda form, data, uses, how: lambda: s.importKey(form, data, how, True, u(*uses))
        short = o(name=name, hash="SHA-256")
        await p.ask(f"{name}imp", get("spki", spki, ["encrypt" if is_oaep else "verify"], short))
        await p.ask(f"{name}impNoHash", get("spki", spki, [], name))
        await p.ask(f"{name}impPkNoUse", get("pkcs8", pkcs8, [], short))
        wrong = "decrypt" if is_oaep else "sign"
        await p.ask(f"{name}impPubBad", get("spki", spki, [wrong], short))
        await p.ask(f"{name}garb", get("pkcs8", b(20), uses[:1], short))
        await p.ask(f"{name}garbS", get("spki", b(20), [], short))
        await p.ask(f"{name}impRaw", get("raw", b(20), [], short))
        how = o(name=name, **more)
        if is_oaep:
            sealed = await s.encrypt(how, public, b(3))
            await p.ask("oaepOk", lambda: s.decrypt(how, private, sealed))
            await p.ask("oaepLong", lambda: s.encrypt(how, public, b(300)))
            await p.ask("oaepBad", lambda: s.decrypt(how, private, b(256)))
        else:
            signed = await s.sign(how, private, b(3))
            await p.ask(f"{name}ok", lambda: s.verify(how, public, signed, b(3)))
            await p.ask(f"{name}bad", lambda: s.verify(how, public, b(3), b(3)))
            await p.ask(f"{name}signPub", lambda: s.sign(how, public, b(3)))
        if name == "RSA-PSS":
            await p.ask(f"{name}noSalt", lambda: s.sign(o(name="RSA-PSS"), private, b(3)))


async def curves(p: Probes) -> None:
    s = js.crypto.subtle
    for name, uses in (("ECDSA", ("sign", "verify")), ("ECDH", ("deriveBits", "deriveKey"))):
        how = o(name=name, namedCurve="P-256")
        make = lambda uses, how=how: lambda: s.generateKey(how, True, u(*uses))
        pair = await make(uses)()
        public, private = pair.publicKey, pair.privateKey
        p[name] = show(pair)
        raw = await s.exportKey("raw", public)
        p[f"{name}rawLen"] = raw.byteLength
        await p.ask(f"{name}rawPriv", lambda: s.exportKey("raw", private))
        await p.ask(f"{name}curve", make(uses, o(name=name, namedCurve="P-1")))
        await p.ask(f"{name}noCurve", make(uses, o(name=name)))
        await p.ask(f"{name}nouse", make(()))
        await p.ask(f"{name}baduse", make(("encrypt",)))
        get = lambda form, data, uses, how=how: lambda: s.importKey(form, data, how, True, u(*uses))
        await p.ask(f"{name}impRaw", get("raw", raw, ["verify"] if name == "ECDSA" else []))
        await p.ask(f"{name}impRawBad", get("raw", b(10), []))
        await p.ask(f"{name}impRawUse", get("raw", raw, ["sign" if name == "ECDSA" else uses[0]]))
        spki = await s.exportKey("spki", public)
        other = o(name=name, namedCurve="P-384")
        await p.ask(f"{name}mismatch", get("spki", spki, [], other))
        if name == "ECDSA":
            sha = o(name=name, hash="SHA-256")
            signed = await s.sign(sha, private, b(3))
            p["ecLen"] = signed.byteLength
            await p.ask("ecOk", lambda: s.verify(sha, public, signed, b(3)))
            await p.ask("ecNoHash", lambda: s.sign("ECDSA", private, b(3)))
            await p.ask("ecBad", lambda: s.verify(sha, public, b(64), b(3)))
            await p.ask("ecShort", lambda: s.verify(sha, public, b(3), b(3)))
            continue
        peer = await make(uses)()
        d = lambda length, key, own=private: (
            lambda: s.deriveBits(o(name="ECDH", public=key), own, length)
        )
        p["dhLen"] = (await d(256, peer.publicKey)()).byteLength
        p["dhNull"] = (await d(None, peer.publicKey)()).byteLength
        p["dhOdd"] = (await d(13, peer.publicKey)()).byteLength
        await p.ask("dhLong", d(512, peer.publicKey))
        await p.ask("dhNoPub", lambda: s.deriveBits(o(name="ECDH"), private, 256))
        await p.ask("dhPriv", d(256, peer.privateKey))
        bigger = await make(uses, other)()
        await p.ask("dhCurve", d(256, bigger.publicKey))
        await p.ask(
            "dhKey",
            lambda: s.deriveKey(
                o(name="ECDH", public=peer.publicKey),
                private,
                o(name="AES-GCM", length=128),
                False,
                u("encrypt"),
            ),
        )
    for name in ("Ed25519", "X25519", "NODE-ED25519"):
        uses = ("deriveBits",) if name == "X25519" else ("sign", "verify")
        how = o(name=name, namedCurve=name) if name == "NODE-ED25519" else name
        pair = await s.generateKey(how, True, u(*uses))
        p[name] = show(pair)
        p[f"{name}raw"] = (await s.exportKey("raw", pair.publicKey)).byteLength
        await p.ask(f"{name}rawPriv", lambda: s.exportKey("raw", pair.privateKey))
        if name != "X25519":
            p[f"{name}sig"] = (await s.sign(name, pair.privateKey, b(1))).byteLength
            check = lambda size, name=name, key=pair.publicKey: (
                lambda: s.verify(name, key, b(size), b(1))
            )
            await p.ask(f"{name}ver", check(64))
            await p.ask(f"{name}verShort", check(6))


async def bad_keys(p: Probes) -> None:
    s = js.crypto.subtle
    k = "BwcHBwcHBwcHBwcHBwcHBw"
    gcm = lambda **jwk: s.importKey("jwk", o(**jwk), "AES-GCM", True, u("encrypt"))
    calls: list[Callable[[], Any]] = [
        gcm,
        lambda: gcm(kty="RSA"),
        lambda: gcm(kty="oct", k="AAAA"),
        lambda: s.importKey("jwk", b(3), "AES-GCM", True, u("encrypt")),
        lambda: gcm(kty="oct", k=k, alg="A256GCM"),
        lambda: gcm(kty="oct", k=k, ext=False),
        lambda: gcm(kty="oct", k=k, key_ops=["decrypt"]),
        lambda: gcm(kty="oct", k=k, use="sig"),
        lambda: s.importKey("raw", o(), "AES-GCM", True, u("encrypt")),
        lambda: s.importKey("raw", b(16), "AES-GCM", True),
        lambda: s.importKey("raw", b(16), "AES-GCM"),
        lambda: s.importKey("bogus", b(16), "AES-GCM", True, u("encrypt")),
        lambda: gcm(kty="oct", k="@@"),
        lambda: s.importKey(
            *("jwk", o(kty="oct", k="BwcH", alg="HS512"), o(name="HMAC", hash="SHA-256")),
            *(True, u("sign")),
        ),
    ]
    p["jwkBad"] = [await told(call) for call in calls]
    p["tse"] = [await told(lambda size=size: s.timingSafeEqual(b(2), b(size))) for size in (2, 3)]
    r = js.crypto.getRandomValues
    p["grv"] = [
        await told(lambda: r(js.Float32Array.new(1))),
        await told(lambda: r(js.Uint8Array.new(65537))),
        await told(lambda: r(js.ArrayBuffer.new(1))),
        await told(lambda: r(js.Array.new())),
    ]


GROUPS = (hmac_and_digest, aes_keys, aes_modes, derivation, rsa, curves, bad_keys)
