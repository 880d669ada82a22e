"""A Workflow's binding as the SDK frozen in the runtime hands it out (python-api.md 1.13).

It stands before the raw `JsProxy` and converts nothing, neither arguments nor results: a dict is a
`PyProxy`, which cannot be cloned, and a status is a `JsProxy`. A method of an instance is a
coroutine that returns JavaScript's promise, so that it takes a second `await` to have the result.
Names that are not here pass through: `sendEvent`, `createBatch`, `delete`.
"""

from __future__ import annotations

from typing import Any


class _WorkflowInstanceWrapper:
    """An instance of a Workflow."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binding, name)

    async def send_event(self, *args: Any, **kwargs: Any) -> Any:
        """Send an event to the instance; returns the promise."""
        return self._binding.sendEvent(*args, **kwargs)

    async def pause(self, *args: Any, **kwargs: Any) -> Any:
        """Pause the instance; returns the promise."""
        return self._binding.pause(*args, **kwargs)

    async def resume(self, *args: Any, **kwargs: Any) -> Any:
        """Resume the instance; returns the promise."""
        return self._binding.resume(*args, **kwargs)

    async def terminate(self, *args: Any, **kwargs: Any) -> Any:
        """Terminate the instance; returns the promise."""
        return self._binding.terminate(*args, **kwargs)

    async def restart(self, *args: Any, **kwargs: Any) -> Any:
        """Start the instance over; returns the promise."""
        return self._binding.restart(*args, **kwargs)

    async def status(self, *args: Any, **kwargs: Any) -> Any:
        """Ask for the status; returns the promise of a raw object."""
        return self._binding.status(*args, **kwargs)


class _WorkflowBindingWrapper:
    """A Workflow: the methods named here return wrapped instances."""

    def __init__(self, binding: Any) -> None:
        self._binding = binding

    def __getattr__(self, name: str) -> Any:
        return getattr(self._binding, name)

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        """Return the instance with an id."""
        return _WorkflowInstanceWrapper(await self._binding.get(*args, **kwargs))

    async def create(self, *args: Any, **kwargs: Any) -> Any:
        """Start an instance."""
        return _WorkflowInstanceWrapper(await self._binding.create(*args, **kwargs))

    async def create_batch(self, *args: Any, **kwargs: Any) -> Any:
        """Start instances."""
        found = await self._binding.createBatch(*args, **kwargs)
        return [_WorkflowInstanceWrapper(one) for one in found]


for _class in (_WorkflowInstanceWrapper, _WorkflowBindingWrapper):
    _class.__module__ = "workers._workers"

del _class
