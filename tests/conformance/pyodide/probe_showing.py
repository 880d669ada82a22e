"""What a probe's result looks like in text: the same code runs in real Pyodide and in the emulator.

It must not know where it runs; it asks only what user code could ask. `describe` is JavaScript's
own view of a value, a function of the harness.
"""

import ast
import datetime
import inspect
import re
import types

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_PLACE = re.compile(r"from '([\w.]+)' \((?:/|unknown location)[^)]*\)")
_FILE = re.compile(r'File "[^"]*", line \d+')
_BUILTIN = (bool, int, float, str, bytes, list, tuple, set, dict, bytearray, complex, range)


def show(value, describe):
    """Return the text of a Python value, with JavaScript's view of what JavaScript owns."""
    from pyodide.ffi import JsException, JsProxy

    kind = type(value)
    if value is None or kind in (bool, int, float, str, bytes, bytearray, range):
        return repr(value)
    if isinstance(value, JsException):
        return f"{kind.__name__}({value.name}: {value.message})"
    if isinstance(value, BaseException):
        return f"{kind.__name__}({_text(value)})"
    if isinstance(value, JsProxy):
        return f"JsProxy {describe(value)}"
    if isinstance(value, type):
        return f"<class {value.__module__}.{value.__qualname__}>"
    if isinstance(value, memoryview):
        return f"memoryview {value.format} {value.tolist()}"
    if isinstance(value, datetime.datetime):
        return repr(value)
    if inspect.iscoroutine(value) or hasattr(value, "cr_frame") or _is_call(value):
        value.close()
        return "coroutine"
    if isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType):
        return f"{kind.__name__} {value.__name__}"
    return _show_container(value, kind, describe)


def _is_call(value):
    return hasattr(value, "send") and hasattr(value, "close") and hasattr(value, "throw")


def _show_container(value, kind, describe):
    name = "" if kind in _BUILTIN else kind.__name__
    inner = lambda one: show(one, describe)  # noqa: E731
    if isinstance(value, dict):
        pairs = ", ".join(f"{inner(key)}: {inner(item)}" for key, item in value.items())
        return f"{name}{{{pairs}}}"
    if isinstance(value, list):
        return f"{name}[{', '.join(map(inner, value))}]"
    if isinstance(value, tuple):
        return f"{name}({', '.join(map(inner, value))})"
    if isinstance(value, set | frozenset):
        return f"{name or 'set'}({', '.join(sorted(map(inner, value)))})"
    return f"{kind.__name__} {_text(value)}"


def _text(value):
    try:
        text = str(value)
    except Exception as error:
        text = f"<{type(error).__name__}>"
    text = _ADDRESS.sub("", text).split("\n")
    if len(text) > 4 and text[0].startswith(("PythonError: Traceback", "Traceback")):
        text = [text[0], "...", *text[-2:]]
    return _PLACE.sub(r"from '\1' (…)", _FILE.sub("File", "\n".join(text)))


def show_error(error):
    """Return the text of what a probe raised."""
    parts = [f"! {type(error).__name__}: {_text(error)}"]
    if type(error).__name__ == "JsException":
        parts.append(f"name={error.name!r}")
    return " ".join(parts)


async def run_probe(setup, source, names, describe):
    """Run the code of one probe, in names of its own, and return the text of its last value."""
    namespace = {"__name__": "probe", **names}
    try:
        exec(compile(setup, "setup", "exec"), namespace)
    except BaseException as error:
        return "!! " + show_error(error)
    try:
        return show(await _evaluate(source, namespace), describe)
    except Exception as error:
        return show_error(error)


async def _evaluate(source, namespace):
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree = ast.parse(source.replace("\\n", "\n") if "def " in source else source, "probe")
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    if tree.body:
        code = compile(tree, "probe", "exec", flags=flags)
        result = eval(code, namespace)
        if inspect.iscoroutine(result):
            await result
    if last is None:
        return None
    code = compile(ast.Expression(last.value), "probe", "eval", flags=flags)
    result = eval(code, namespace)
    if code.co_flags & inspect.CO_COROUTINE:
        result = await result
    return result
