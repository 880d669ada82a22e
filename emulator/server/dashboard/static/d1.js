// D1: databases, one with its tables and SQL, and the rows of a table.

view("d1", "D1",
  (at) => {
    const [id, name] = at.path;
    if (name !== undefined) {
      return ask("/d1/table", { id, table: name, from: from(at), rows: ROWS });
    }
    return id === undefined ? ask("/d1") : ask("/d1/database", { id });
  },
  (found, at) => {
    if (at.path.length > 1) return oneTable(found, at);
    return at.path.length ? oneDatabase(found) : allDatabases(found);
  });

function allDatabases({ databases }) {
  return [title1("D1"), table("Databases", ["Database", "Names and bindings"],
    databases.map((each) => row(each.id,
      heading(el("a", { href: href("d1", [each.id]) }, each.id)), each.names.join(", "))),
    "No Worker has a D1 database.")];
}

function oneDatabase(database) {
  const { id, tables } = database;
  return [
    el("p", { className: "path" }, el("a", { href: href("d1") }, "D1")), title1(database.name),
    facts(["Id", id], ["Migrations", database.migrations.join(", ") || "none"]),
    table("Tables", ["Table", "Rows"], tables.map((each) => row(each.name,
      heading(el("a", { href: href("d1", [id, each.name]) }, each.name)), number(each.rows))),
    "No tables."),
    query(`sql ${id}`, "Run SQL", "/d1/execute", { id },
      tables.length ? `SELECT * FROM "${tables[0].name}"` : "CREATE TABLE …"),
  ];
}

function oneTable(found, at) {
  return [
    el("p", { className: "path" }, el("a", { href: href("d1") }, "D1"), " / ",
      el("a", { href: href("d1", [found.id]) }, found.name)),
    title1(found.table), pager(at, found.total, from(at), ROWS), gridTable("Rows", found),
  ];
}
