"""D1: SQL databases behind a binding (`emulator.sql` does the SQL).

bindings.py    what user code sees: database, statement, session
parameters.py  what `bind` takes
results.py     what a query answers, and its `meta`
texts.py       the errors of D1
store.py       one database: opened when it is first used, migrated, queried
migrations.py  the folder of migrations, as wrangler applies it
service.py     the databases of one emulator
control.py     a database in a test's hand
"""
