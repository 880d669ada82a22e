"""The command line, `workers-emulator`.

    app.py ─┬─ dev.py ──── dev_run.py, dev_process.py, dev_table.py, dev_console.py
            ├─ run.py ──── run_report.py, replay.py
            ├─ sweep.py ── progress.py
            ├─ check.py ── problems.py
            └─ init.py
    what they share: options.py, scenario.py (with rewriting.py), arguments.py, performance.py,
    streams.py, terminal.py, notices.py, interrupts.py, files.py, refusal.py

Exit codes: 0 for "fine", 1 for "ran, and is not fine", 2 for "could not run" and wrong usage,
130 after Ctrl-C. Nothing else of the emulator imports this package, or click.

A new command is a module with a `command`, and a row in `app.COMMANDS`.
"""
