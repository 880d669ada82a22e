"""`workers.rpc`: what the SDK puts between user code and the platform's JavaScript.

Arguments of a binding's method go through `python_to_rpc`, results through `python_from_rpc`, so
that user code deals in dicts, lists and datetimes. The call itself happens when the method is
called, not when its coroutine is awaited, and that is when a wrong argument raises.

Over 400 lines because the wrappers hand out one another.
"""

from __future__ import annotations

import inspect
from asyncio import Future
from contextvars import ContextVar
from importlib import import_module
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from emulator.runtime import frozen_rpc, frozen_workflows
from emulator.runtime.calls import Method, invoke, method_of, positional_limit
from emulator.runtime.host import current
from emulator.runtime.js_properties import lookup
from emulator.runtime.profile import has_importable_env, is_modern
from emulator.runtime.promises import binding_call
from emulator.runtime.proxies import JsProxy, hold, unmangle, wrap, wrap_host
from emulator.runtime.pyproxy import call_value, unwrap
from emulator.values import UNDEFINED, Function, HostObject, class_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

from emulator.runtime.rpc_values import (
    PASSTHROUGH,
    PRIMITIVE,
    UNCHANGED,
    JsDict,
    from_canonical,
    plain_proxy,
    python_from_rpc,
    python_to_rpc,
)
from emulator.runtime.rpc_values import register_class as register_class
from emulator.runtime.rpc_values import to_canonical as to_canonical


def _sent(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """The canonical values of arguments; those with names are one trailing object."""
    values: Sequence[Any] = args
    for arg in args:
        if type(arg) not in UNCHANGED:
            values = [arg if type(arg) in UNCHANGED else to_canonical(arg) for arg in args]
            break
    if kwargs:
        options = {key: to_canonical(value) for key, value in kwargs.items()}
        return [*values, options]
    return values


class _BindingWrapper:
    """A binding, or an object that one returned, with converted arguments and results.

    Attributes are read once: the first value is kept.
    """

    _binding: Any

    def __new__(cls, binding: Any) -> _BindingWrapper:
        return binding if isinstance(binding, cls) else object.__new__(cls)

    def __init__(self, binding: Any) -> None:
        if binding is not self:
            self._binding = binding if isinstance(binding, JsProxy) else wrap(binding)

    @property
    def _js(self) -> Any:
        return self._binding._js_unwrap()

    def _js_unwrap(self) -> Any:
        return self._js

    @classmethod
    def _wrap_js_value(cls, value: Any) -> Any:
        if not isinstance(value, JsProxy) or class_of(unwrap(value)) in PASSTHROUGH:
            return value
        if callable(value):
            return _RpcStubWrapper(value)
        return cls(value)

    @classmethod
    def _convert_result(cls, result: Any) -> Any:
        kind = type(result)
        if kind in PRIMITIVE:
            return result
        if kind is dict:
            return from_canonical(result)
        if kind is list:
            return [cls._convert_one(item) for item in result]
        if isinstance(result, list):
            return [cls._wrap_js_value(item) for item in from_canonical(result)]
        return cls._convert_one(result)

    @classmethod
    def _convert_one(cls, result: Any) -> Any:
        """Convert what is neither a plain object nor an array, or an item of one."""
        if isinstance(result, HostObject):
            return cls._convert_host(result)
        return cls._wrap_js_value(from_canonical(result))

    @classmethod
    def _convert_host(cls, result: HostObject) -> Any:
        kind: Any = type(result)
        plain = plain_proxy(kind)
        if plain is None:
            return cls._wrap_js_value(from_canonical(result))
        wrapper = object.__new__(cls)
        wrapper._binding = proxy = object.__new__(plain)
        hold(proxy, result)
        return wrapper

    @classmethod
    def _invoke(
        cls, held: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
    ) -> Any:
        """Call a function of the object that is `held`."""
        values = _sent(args, kwargs)
        if type(function) is MethodType:
            limit = positional_limit(function.__func__)
            result = function(*(values if limit is None else values[:limit]))
        elif isinstance(function, Function):
            result = call_value(function, *values)
        elif isinstance(function, HostObject):
            result = function(*values)  # type: ignore[operator]
        else:
            result = invoke(function, values)
        return cls._convert_outcome(held, result, name)

    @classmethod
    def _call_method(
        cls, held: Any, method: Method, args: tuple[Any, ...], kwargs: dict[str, Any], name: str
    ) -> Any:
        """`_invoke`, of a method that the class of the object has: of most."""
        function, limit, convert = method
        values = _sent(args, kwargs) if args or kwargs else args
        if limit is not None and len(values) > limit:
            values = values[:limit]
        # Python calls a function that is given a sequence by way of C, at the cost of ten lines.
        if not values:
            result = function(held)
        elif len(values) == 1:
            result = function(held, values[0])
        else:
            result = function(held, *values)
        if isinstance(result, Future):
            return binding_call(result, convert or cls._convert_result, held.js_class, name)
        return cls._convert_outcome(held, result, name)

    @classmethod
    def _convert_outcome(cls, held: Any, result: Any, name: str) -> Any:
        """What user code sees of what a method returned: a promise is a call."""
        if isinstance(result, HostObject):  # which none awaits
            return cls._convert_host(result)
        if result is UNDEFINED:
            return None
        if isinstance(result, Future) or inspect.isawaitable(result):
            return binding_call(result, cls._convert_result, class_of(held), name)
        return cls._convert_result(result)

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" or name == "_binding":
            raise AttributeError(name)
        # Each look at an attribute of `self` costs: Python has no short way where there is a
        # `__getattr__`.
        cls, held = type(self), self._binding._js_unwrap()
        kind: Any = type(held)
        call: Callable[..., Any] = cls._call_method
        member: Any = method_of(kind, name)
        if member is None:
            call = cls._invoke
            if isinstance(held, HostObject) and name in held.js_members:
                member = held.js_lookup(name)
            elif name == "typeof" or (name[0] != "_" and hasattr(type(self._binding), name)):
                return self._of_proxy(name)
            else:
                member = lookup(held, unmangle(name))
            is_method = type(member) is MethodType
            if not is_method and (not callable(member) or isinstance(member, HostObject)):
                result = cls._convert_result(member)
                setattr(self, name, result)
                return result

        # Kept in `self`, it must not hold `self`: one garbage cycle per message is a lot.
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return call(held, member, args, kwargs, name)

        setattr(self, name, wrapper)
        return wrapper

    def _of_proxy(self, name: str) -> Any:
        """What `JsProxy` has in Python, `to_py` say, goes before what the object has."""
        held = getattr(self._binding, name)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            named = {key: python_to_rpc(value) for key, value in kwargs.items()}
            return convert(held(*map(python_to_rpc, args), **named))

        convert = self._wrap_from_rpc
        self.__dict__[name] = result = wrapper if callable(held) else convert(held)
        return result

    @classmethod
    def _wrap_from_rpc(cls, value: Any) -> Any:
        return cls._wrap_js_value(python_from_rpc(value))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int):
            return self._convert_result(unwrap(self._binding[key]))
        return self._convert_result(unwrap(getattr(self._binding, key)))

    def __iter__(self) -> Iterator[Any]:
        binding = self._binding
        if not hasattr(type(binding), "__iter__"):
            raise TypeError(f"'{class_of(self._js)}' object is not iterable")
        for item in binding:
            yield self._convert_result(unwrap(item))

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        length = getattr(self._binding, "length", None)
        if not isinstance(length, int):
            raise TypeError(f"'{class_of(self._js)}' object has no len()")
        return length


class _RpcStubWrapper(_BindingWrapper):
    """A function or RpcTarget that came over RPC: it may always be called, the server decides."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._invoke(self._js, self._js, args, kwargs, "call")


class _FetcherWrapper(_BindingWrapper):
    """A service binding: RPC methods, and `fetch` with the SDK's own signature."""

    def fetch(self, *args: Any, **kwargs: Any) -> Any:
        """Send a request to the service; see `workers.fetch`."""
        fetch = import_module("workers").fetch
        return fetch(*args, fetcher=self._binding.fetch, **kwargs)


class _DurableObjectNamespaceWrapper:
    """A namespace of durable objects: stubs are wrapped, ids are raw."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binding, name)

    def get(self, *args: Any, **kwargs: Any) -> _FetcherWrapper:
        """Return the stub for an id."""
        return _FetcherWrapper(self._binding.get(*args, **kwargs))

    def getByName(self, *args: Any, **kwargs: Any) -> _FetcherWrapper:
        """Return the stub for a name."""
        return _FetcherWrapper(self._binding.getByName(*args, **kwargs))

    def jurisdiction(self, *args: Any, **kwargs: Any) -> _DurableObjectNamespaceWrapper:
        """Return the namespace restricted to a jurisdiction."""
        return _DurableObjectNamespaceWrapper(self._binding.jurisdiction(*args, **kwargs))


class _WorkflowInstanceWrapper(_BindingWrapper):
    """An instance of a workflow; `send_event` is the SDK's own name for `sendEvent`."""

    def send_event(self, *args: Any, **kwargs: Any) -> Any:
        """Send an event to the instance."""
        return self._invoke(self._js, lookup(self._js, "sendEvent"), args, kwargs, "sendEvent")


class _WorkflowBindingWrapper(_BindingWrapper):
    """A workflow: its methods return wrapped instances."""

    def _instance(self, value: Any) -> Any:
        return _WorkflowInstanceWrapper(wrap(value))

    def _start(self, name: str, convert: Callable[[Any], Any], args: Any, kwargs: Any) -> Any:
        work = invoke(lookup(self._js, name), _sent(args, kwargs))
        return binding_call(work, convert, class_of(self._js), name)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """Return the instance with an id."""
        return self._start("get", self._instance, args, kwargs)

    def create(self, *args: Any, **kwargs: Any) -> Any:
        """Start an instance."""
        return self._start("create", self._instance, args, kwargs)

    def create_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Start instances."""
        convert: Callable[[Any], Any] = lambda found: [self._instance(one) for one in found]  # noqa: E731
        return self._start("createBatch", convert, args, kwargs)


# What `workers.patch_env` puts before the Worker's bindings.
PATCHES: Final[ContextVar[dict[str, Any]]] = ContextVar("emulator.patched_env", default={})  # noqa: B039


class _Env(HostObject):
    """The bindings of whatever Worker runs when they are read."""

    js_class = "Object"

    def js_lookup(self, name: str) -> Any:
        host = current()
        patches = PATCHES.get()
        if name in patches:
            return patches[name]
        bindings = host.env
        if name in bindings:
            return bindings[name]
        error = AttributeError(name)
        error.add_note(host.missing_binding(name) or self._there_are())
        raise error

    def js_keys(self) -> list[str]:
        return list({**current().env, **PATCHES.get()})

    def _there_are(self) -> str:
        names = ", ".join(self.js_keys()) or "none"
        return f"env has no such binding, variable or secret; there are: {names}"


class _NoEnv(_Env):
    """The importable env where a flag disallows it: it has what `patch_env` puts there, only."""

    def js_lookup(self, name: str) -> Any:
        patches = PATCHES.get()
        if name in patches:
            return patches[name]
        error = AttributeError(name)
        error.add_note(
            "The compatibility flag disallow_importable_env leaves the env of `workers` empty; "
            "handlers have it as `self.env`."
        )
        raise error

    def js_keys(self) -> list[str]:
        return list(PATCHES.get())


def importable_env() -> Any:
    """Return the env of the module `cloudflare:workers`."""
    return raw_env() if has_importable_env() else wrap(_NoEnv())


def raw_env() -> Any:
    """Return the env as legacy code gets it: a `JsProxy` whose contents are those of the moment."""
    return wrap_host(_Env())


_WRAPPED: Final = frozenset(
    {
        "KvNamespace",
        "R2Bucket",
        "D1Database",
        "WorkerQueue",
        "Ai",
        "VectorizeIndexImpl",
        "AnalyticsEngine",
        "AnalyticsEngineDataset",
        "LocalAnalyticsEngineDataset",
        "ImagesBindingImpl",
        "HostedImagesBindingImpl",
        "Ratelimit",
    }
)


_WRAPPERS: Final[dict[str, Callable[[Any], Any]]] = {
    "Fetcher": _FetcherWrapper,
    "DurableObjectNamespace": _DurableObjectNamespaceWrapper,
    "WorkflowImpl": _WorkflowBindingWrapper,
    **dict.fromkeys(sorted(_WRAPPED), _BindingWrapper),
}


# What the SDK frozen in the runtime has instead; None leaves a binding raw.
_FROZEN: Final[dict[str, Callable[[Any], Any] | None]] = {
    "Fetcher": frozen_rpc._FetcherWrapper,
    "DurableObjectNamespace": frozen_rpc._DurableObjectNamespaceWrapper,
    "WorkflowImpl": frozen_workflows._WorkflowBindingWrapper,
    **dict.fromkeys(sorted(_WRAPPED)),
}


class _EnvWrapper:
    """The env: bindings are wrapped by their JavaScript class, other objects are raw `JsProxy`.

    The SDK frozen in the runtime wraps what has `fetch` or instances, and leaves the rest raw too.
    `_EnvWrapper(raw_env())` follows the Worker that runs, so that modules may keep it for good.
    """

    _env: Any
    _known: dict[str, tuple[Any, Any]]

    def __new__(cls, env: Any) -> _EnvWrapper:
        return env if isinstance(env, cls) else object.__new__(cls)

    def __init__(self, env: Any) -> None:
        if env is not self:
            self._env = wrap(env) if isinstance(env, HostObject) else env
            self._known = {}

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" or name in ("_env", "_known"):
            raise AttributeError(name)
        if not isinstance(self._env, JsProxy):
            return getattr(self._env, name)
        raw = lookup(self._env._js_unwrap(), name)
        known = self._known.get(name)
        if known is not None and known[0] is raw:
            return known[1]
        factory = self._wrapper(class_of(raw)) if isinstance(raw, HostObject) else None
        result = wrap(raw) if factory is None else factory(wrap(raw))
        self._known[name] = (raw, result)
        return result

    @staticmethod
    def _wrapper(js_class: str) -> Callable[[Any], Any] | None:
        if js_class in _FROZEN and not is_modern():
            return _FROZEN[js_class]
        return _WRAPPERS.get(js_class)


class TestEnvWrapper(_EnvWrapper):
    """The env as a test has it: stubs and Workflows are the same whatever the Worker's date."""

    __test__ = False

    @staticmethod
    def _wrapper(js_class: str) -> Callable[[Any], Any] | None:
        if js_class in ("WorkflowImpl", "Fetcher", "DurableObjectNamespace"):
            return _WRAPPERS[js_class]
        return _EnvWrapper._wrapper(js_class)


for _class in (
    _BindingWrapper,
    _RpcStubWrapper,
    _FetcherWrapper,
    _DurableObjectNamespaceWrapper,
    _WorkflowInstanceWrapper,
    _WorkflowBindingWrapper,
    _EnvWrapper,
):
    _class.__module__ = "workers.rpc"


del _class


__all__ = [
    "JsDict",
    "_BindingWrapper",
    "_DurableObjectNamespaceWrapper",
    "_EnvWrapper",
    "_FetcherWrapper",
    "_RpcStubWrapper",
    "_WorkflowBindingWrapper",
    "_WorkflowInstanceWrapper",
    "python_from_rpc",
    "python_to_rpc",
]
