"""The Worker that every test here runs in."""

from __future__ import annotations

from web_host import host as host
