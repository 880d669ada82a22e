"""Instances in, one or many at once, and many out (B1 to B12)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.workflows import texts
from emulator.workflows.grammar import (
    check_address,
    check_batch,
    check_deleted_batch,
    check_id,
    check_listed_batch,
    check_listed_id,
)
from emulator.workflows.model import KEEP, BatchResult, ItemError
from emulator.workflows.rollback import Rollbacks
from emulator.workflows.texts import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emulator.workflows.model import Instant, NewInstance, Retention, Schedule


class Batches(Rollbacks):
    """The verbs that create instances and delete them."""

    def create(
        self,
        workflow: str,
        id: str,
        params: bytes,
        now: Instant,
        *,
        trigger: str = "binding",
        schedule: Schedule | None = None,
        retention: Retention = KEEP,
    ) -> str:
        """Create an instance and let it run when there is a slot (B1, B2, B4, B5)."""
        self.rules(workflow)
        (check_id if schedule is None else check_address)(id)
        if id in self._instances.get(workflow, {}):
            raise texts.already_exists(id)
        self._check_params(workflow, params)
        told = None if schedule is None else list(schedule)
        self._add(workflow, id, now, params, trigger, told, list(retention))
        return id

    def create_batch(
        self,
        workflow: str,
        items: Sequence[NewInstance],
        now: Instant,
        *,
        trigger: str = "binding",
    ) -> list[str]:
        """Create all that are new, silently leaving out the others; the ids created (B6, B7)."""
        self.rules(workflow)
        check_batch(len(items))
        for item in items:
            check_id(item.id)
            self._check_params(workflow, item.params)
        created = []
        for item in items:
            if item.id not in self._instances.get(workflow, {}):
                self._add_item(workflow, item, now, trigger)
                created.append(item.id)
        return created

    def create_each(
        self,
        workflow: str,
        items: Sequence[NewInstance],
        now: Instant,
        *,
        trigger: str = "binding",
    ) -> BatchResult:
        """Create all that are new, and tell of the others (B8, B9)."""
        self.rules(workflow)
        check_listed_batch(len(items))
        for item in items:
            check_listed_id(item.id)
            self._check_params(workflow, item.params)
        result = BatchResult([], [])
        seen = set()
        for index, item in enumerate(items):
            if item.id in seen:
                result.errors.append(ItemError(index, item.id, *texts.DUPLICATE_IN_BATCH))
            elif item.id in self._instances.get(workflow, {}):
                result.errors.append(ItemError(index, item.id, *texts.ALREADY_EXISTS))
            else:
                self._add_item(workflow, item, now, trigger)
                result.done.append(item.id)
            seen.add(item.id)
        return result

    def delete(self, workflow: str, id: str, now: Instant) -> None:
        """Forget the instance, stopping it; its id is free again (I18)."""
        instance = self._find(workflow, id)
        self._stop(instance)
        self._commit("delete", instance, now)

    def delete_batch(self, workflow: str, ids: Sequence[str], now: Instant) -> BatchResult:
        """Delete those that exist, one entry for each position; repeats count as done (B11)."""
        self.rules(workflow)
        check_deleted_batch(len(ids))
        for id in ids:
            check_address(id)
        result = BatchResult([], [])
        for index, id in enumerate(ids):
            if id in self._instances.get(workflow, {}):
                self.delete(workflow, id, now)
                result.done.append(id)
            elif id in result.done:
                result.done.append(id)
            else:
                result.errors.append(ItemError(index, id, *texts.MISSING_IN_BATCH))
        return result

    def _check_params(self, workflow: str, params: bytes) -> None:
        limit = self.rules(workflow).max_payload
        if self._profile == "production" and limit is not None and len(params) > limit:
            raise EngineError(*texts.PARAMS_TOO_LARGE)

    def _add_item(self, workflow: str, item: NewInstance, now: Instant, trigger: str) -> None:
        retention = list(item.retention)
        self._add(workflow, item.id, now, item.params, trigger, None, retention)

    def _add(self, workflow: str, id: str, now: Instant, *facts: object) -> None:
        self._keep(("create", workflow, id, now, self._next_number, *facts))
        self._want_run(self._instances[workflow][id])
