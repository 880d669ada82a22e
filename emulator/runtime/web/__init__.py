"""The web platform's classes: the JavaScript side of requests, responses, forms, URLs, streams.

Importing the package adds them to the globals of the module `js`.
"""

from emulator.runtime.js import register, register_later
from emulator.runtime.js_crypto import Crypto
from emulator.runtime.web.abort import AbortController, AbortSignal
from emulator.runtime.web.blob import Blob, File
from emulator.runtime.web.caches import Cache, CacheStorage
from emulator.runtime.web.compression import CompressionStream, DecompressionStream
from emulator.runtime.web.events import (
    CloseEvent,
    CustomEvent,
    ErrorEvent,
    Event,
    EventTarget,
    MessageEvent,
)
from emulator.runtime.web.fetch import fetch
from emulator.runtime.web.formdata import FormData
from emulator.runtime.web.headers import Headers
from emulator.runtime.web.request import Request
from emulator.runtime.web.response import Response
from emulator.runtime.web.streams import ReadableStream, Reader
from emulator.runtime.web.surroundings import (
    Cloudflare,
    Navigator,
    Performance,
    Scheduler,
    reportError,
)
from emulator.runtime.web.text_streams import TextDecoderStream, TextEncoderStream
from emulator.runtime.web.transform import (
    FixedLengthStream,
    IdentityTransformStream,
    TransformStream,
)
from emulator.runtime.web.url import URL
from emulator.runtime.web.url_parameters import URLSearchParams
from emulator.runtime.web.websocket import (
    WebSocket,
    WebSocketPair,
    WebSocketRequestResponsePair,
)
from emulator.runtime.web.writable import WritableStream

for _class in (
    AbortController,
    AbortSignal,
    Blob,
    Cache,
    CacheStorage,
    CloseEvent,
    CompressionStream,
    Crypto,
    CustomEvent,
    DecompressionStream,
    ErrorEvent,
    Event,
    EventTarget,
    File,
    FixedLengthStream,
    FormData,
    Headers,
    IdentityTransformStream,
    MessageEvent,
    Navigator,
    Performance,
    ReadableStream,
    Reader,
    Request,
    Response,
    TextDecoderStream,
    TextEncoderStream,
    TransformStream,
    URL,
    URLSearchParams,
    WebSocket,
    WebSocketPair,
    WebSocketRequestResponsePair,
    WritableStream,
):
    register(_class.js_class, _class)
register("fetch", fetch)
register("caches", CacheStorage())
register("reportError", reportError)
for _name, _object in (
    ("navigator", Navigator()),
    ("performance", Performance()),
    ("scheduler", Scheduler()),
    ("Cloudflare", Cloudflare()),
):
    register(_name, _object)
for _name, _module in (
    ("CryptoKey", "emulator.runtime.crypto.keys"),
    ("EventSource", "emulator.runtime.web.event_source"),
    ("HTMLRewriter", "emulator.runtime.html.rewriter"),
    ("SubtleCrypto", "emulator.runtime.crypto.subtle"),
    ("URLPattern", "emulator.runtime.web.url_pattern"),
):
    register_later(_name, _module)
