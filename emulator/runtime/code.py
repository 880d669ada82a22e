"""`pyodide.code`: running code that comes as text, and calls that drop surplus arguments."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import tokenize
from typing import TYPE_CHECKING, Any, Literal

from emulator.values import JsException

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

_Mode = Literal["last_expr", "last_expr_or_assign", "none"]
# Seen in the runtime of 2024.
_NO_EVAL = "Code generation from strings disallowed for this context"


def run_js(code: str, /) -> Any:
    """Refuse, as production does: a Worker must not run JavaScript that comes as text."""
    if not isinstance(code, str):
        raise TypeError(f"argument should have type 'string' not type '{type(code).__name__}'")
    error = JsException("EvalError", _NO_EVAL)
    error.add_note("The objects of the module `js` are there: write `from js import …`.")
    raise error


def relaxed_wrap(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that ignores the arguments `func` does not take."""
    kept = _keeper(func)
    if kept is None:
        raise TypeError("Cannot wrap function")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _call(func, kept, args, kwargs)

    return wrapper


def relaxed_call(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function without the arguments it does not take; missing ones are a `TypeError`."""
    kept = _keeper(func)
    return func(*args, **kwargs) if kept is None else _call(func, kept, args, kwargs)


def _keeper(func: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):
        return None  # a built-in that does not say


def _call(
    func: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    kinds = [(one.name, one.kind) for one in signature.parameters.values()]
    if not any(kind is inspect.Parameter.VAR_POSITIONAL for _, kind in kinds):
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        args = args[: sum(kind in by_position for _, kind in kinds)]
    if not any(kind is inspect.Parameter.VAR_KEYWORD for _, kind in kinds):
        by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        known = [name for name, kind in kinds if kind in by_name]
        kwargs = {name: value for name, value in kwargs.items() if name in known}
    bound = signature.bind(*args, **kwargs)
    return func(*bound.args, **bound.kwargs)


def should_quiet(source: str, /) -> bool:
    """Return whether the code ends with a semicolon, so that its value is not wanted."""
    last = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
            last = token.string
    return last == ";"


def find_imports(source: str) -> list[str]:
    """Return the top-level modules that code imports, sorted; none if it cannot be read."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return sorted(dict.fromkeys(name.partition(".")[0] for name in names))


def eval_code(
    source: str,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    *,
    return_mode: _Mode = "last_expr",
    quiet_trailing_semicolon: bool = True,
    filename: str = "<exec>",
    flags: int = 0,
) -> Any:
    """Run code and return the value of its last expression, None if there is none."""
    body, last = _compile(source, filename, flags, return_mode, quiet_trailing_semicolon)
    space: dict[str, Any] = {} if globals is None else globals
    exec(body, space, locals)
    return None if last is None else eval(last, space, locals)


async def eval_code_async(
    source: str,
    globals: dict[str, Any] | None = None,
    locals: dict[str, Any] | None = None,
    *,
    return_mode: _Mode = "last_expr",
    quiet_trailing_semicolon: bool = True,
    filename: str = "<exec>",
    flags: int = 0,
) -> Any:
    """Run code that may use `await` on its top level, like `eval_code`."""
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    body, last = _compile(source, filename, flags, return_mode, quiet_trailing_semicolon)
    space: dict[str, Any] = {} if globals is None else globals
    await _awaited(eval(body, space, locals))
    return None if last is None else await _awaited(eval(last, space, locals))


async def _awaited(value: Any) -> Any:
    return await value if inspect.iscoroutine(value) else value


def _compile(
    source: str, filename: str, flags: int, mode: _Mode, quiet: bool
) -> tuple[CodeType, CodeType | None]:
    tree: ast.Module = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST)
    last: ast.expr | None = None
    if mode != "none" and tree.body and not (quiet and should_quiet(source)):
        final = tree.body[-1]
        if isinstance(final, ast.Expr):
            last = final.value
            tree.body.pop()
        elif mode == "last_expr_or_assign" and isinstance(final, ast.Assign):
            target = final.targets[0]
            last = ast.parse(ast.unparse(target), mode="eval").body
    body = compile(tree, filename, "exec", flags)
    if last is None:
        return body, None
    return body, compile(ast.Expression(last), filename, "eval", flags)


for _one in (
    *(run_js, relaxed_wrap, relaxed_call, should_quiet),
    *(find_imports, eval_code, eval_code_async),
):
    _one.__module__ = "pyodide.code"


del _one

__all__ = [
    "eval_code",
    "eval_code_async",
    "find_imports",
    "relaxed_call",
    "relaxed_wrap",
    "run_js",
    "should_quiet",
]
