"""Fault injection: which sites there are, what can happen at them, and which faults strike."""

from emulator.faults.grammar import SitePattern
from emulator.faults.injector import Faults, Site, Unfired
from emulator.faults.plan import Fault, format_plan, parse_plan, parse_site, read_plan
from emulator.faults.sites import (
    CLASSES,
    KINDS,
    Action,
    FaultClass,
    Kind,
    actions_at,
    class_of,
    site_name,
    split_site,
)

__all__ = [
    "CLASSES",
    "KINDS",
    "Action",
    "Fault",
    "FaultClass",
    "Faults",
    "Kind",
    "Site",
    "SitePattern",
    "Unfired",
    "actions_at",
    "class_of",
    "format_plan",
    "parse_plan",
    "parse_site",
    "read_plan",
    "site_name",
    "split_site",
]
