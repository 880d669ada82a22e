"""`js.AbortController` and `js.AbortSignal`: texts are workerd's (1.20261117)."""

import asyncio

import pytest

from emulator.runtime.web.abort import AbortController, AbortSignal
from emulator.values import UNDEFINED, JsException


def test_abort_sets_the_reason_once():
    controller = AbortController.js_new()
    assert (controller.signal.aborted, controller.signal.reason) == (False, UNDEFINED)
    controller.abort("why")
    controller.abort("again")
    assert (controller.signal.aborted, controller.signal.reason) == (True, "why")


def test_the_reason_is_an_abort_error_unless_given():
    controller = AbortController.js_new()
    controller.abort(UNDEFINED)
    assert str(controller.signal.reason) == "AbortError: The operation was aborted"
    assert AbortSignal.abort(None).reason is None


def test_throw_if_aborted():
    assert AbortController.js_new().signal.throwIfAborted() is UNDEFINED
    with pytest.raises(JsException, match="AbortError: The operation was aborted"):
        AbortSignal.abort().throwIfAborted()


def test_a_signal_cannot_be_constructed():
    with pytest.raises(JsException, match="TypeError: Illegal constructor"):
        AbortSignal.js_new()


def test_listeners_are_called_once_and_can_be_removed():
    seen = []
    controller = AbortController.js_new()
    removed = seen.append
    controller.signal.addEventListener("abort", lambda event: seen.append(event.type))
    controller.signal.addEventListener("abort", removed)
    controller.signal.addEventListener("other", removed)
    controller.signal.removeEventListener("abort", removed)
    controller.signal.onabort = lambda event: seen.append(event.target is controller.signal)
    controller.abort()
    controller.abort()
    assert seen == [True, "abort"]  # `onabort` first, as in workerd


def test_any_follows_the_first_signal_to_abort():
    first, second = AbortController.js_new(), AbortController.js_new()
    joined = AbortSignal.any([first.signal, second.signal])
    assert joined.aborted is False
    second.abort("r")
    first.abort("s")
    assert (joined.aborted, joined.reason) == (True, "r")
    assert AbortSignal.any([joined]).reason == "r"


def test_timeout_aborts_with_a_timeout_error():
    async def main():
        signal = AbortSignal.timeout(1)
        assert signal.aborted is False
        done = asyncio.Event()
        signal.watch(done.set)
        await done.wait()
        return str(signal.reason)

    assert asyncio.run(main()) == "TimeoutError: The operation was aborted due to timeout"
