"""Makes `workers`, `pyodide` and `js` importable before any test module is."""

from emulator import Emulator  # noqa: F401
