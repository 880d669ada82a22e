// Durable Objects: the bindings, the objects of one, and one object with its storage.

view("objects", "Durable Objects",
  (at) => {
    const [binding, id] = at.path;
    if (id !== undefined) return ask("/object", { binding, id, from: from(at), rows: ROWS });
    if (binding === undefined) return ask("/objects");
    return ask("/objects/of", { binding, name: at.query.get("name") || "", from: from(at),
      rows: ROWS });
  },
  (found, at) => {
    if (at.path.length > 1) return oneObject(found, at);
    return at.path.length ? objectsOf(found, at) : allSpaces(found);
  });

function allSpaces({ spaces }) {
  return [title1("Durable Objects"), table("Durable Objects",
    ["Binding", "Class", "Worker", "Storage", "Objects", "In memory"],
    spaces.map((each) => row(each.binding,
      heading(el("a", { href: href("objects", [each.binding]) }, each.binding)),
      each.class, each.worker, each.sqlite ? "SQLite" : "key-value", number(each.total),
      number(each.in_memory))), "No Worker has a Durable Object.")];
}

function objectsOf(space, at) {
  return [
    el("p", { className: "path" }, el("a", { href: href("objects") }, "Durable Objects")),
    title1(space.binding), facts(["Class", space.class], ["Worker", space.worker],
      ["Objects", plain(space.total)], ["In memory", plain(space.in_memory)]),
    el("div", { className: "filters", role: "search" },
      field("Name or id contains", input("name", { type: "search",
        value: at.query.get("name") || "", onchange: (event) => goTo(here(at, {
          name: event.target.value || undefined, from: undefined })) }))),
    pager(at, space.found, from(at), ROWS),
    table("Objects", ["Object", "Id", "Memory", "Keys", "Alarm"],
      space.objects.map((one) => row(one.id,
        heading(el("a", { href: href("objects", [space.binding, one.id]) },
          one.name ?? short(one.id))),
        el("td", { className: "id", title: one.id }, short(one.id)),
        one.in_memory ? badge("in memory", "run") : "–", number(one.keys),
        dueTime(one.alarm, space.now))), "No object is in memory or keeps anything."),
  ];
}

function oneObject(one, at) {
  const which = { binding: one.binding, id: one.id }, name = one.name ?? short(one.id);
  return [
    el("p", { className: "path" }, el("a", { href: href("objects") }, "Durable Objects"), " / ",
      el("a", { href: href("objects", [one.binding]) }, one.binding)),
    title1(name, one.in_memory ? [" ", badge("in memory", "run")] : null),
    el("div", { className: "actions", role: "group", "aria-label": "Object" },
      button("Run alarm", () => perform("/object/run-alarm", which, "The alarm has run."),
        { disabled: !one.alarm }),
      button("Evict", () => perform("/object/evict", which, "Its memory is dropped."),
        { disabled: !one.in_memory }),
      button("Crash", async () => {
        if (await sure(`Cut the power of ${name}? What it does now is lost.`, "Crash")) {
          await perform("/object/crash", which, "Its power was cut.");
        }
      }, { kind: "danger", disabled: !one.in_memory })),
    facts(["Id", el("span", { className: "id" }, one.id)], ["Alarm", dueTime(one.alarm, one.now)],
      ["Keys", plain(one.keys)]),
    el("h2", {}, "Storage"), pager(at, one.keys, from(at), ROWS),
    table("Storage", ["Key", "Bytes", "Value"], one.values.map(([key, size, text]) =>
      row(`key ${key}`, heading(key), number(size), el("td", { className: "body" },
        opening(`value ${one.id} ${key} ${size} ${text}`, text,
          async () => (await ask("/object/value", { ...which, key })).value)))),
    "It keeps no values."),
    one.tables.length ? [
      el("h2", {}, "Tables"), table("Tables", ["Table", "Rows"],
        one.tables.map((each) => row(`table ${each.name}`, heading(each.name), number(each.rows)))),
      query(`sql ${one.id}`, "Read with SQL", "/object/sql", which,
        `SELECT * FROM "${one.tables[0].name}"`),
    ] : null,
  ];
}

const short = (id) => (id.length > 20 ? `${id.slice(0, 12)}…` : id);

// -- SQL -----------------------------------------------------------------------------------------

const answers = new Map();

// A field for SQL, and the rows that came of it.
function query(key, label, path, which, example) {
  const run = async (given) => {
    answers.delete(key);
    const found = await perform(path, { ...which, ...given }, null);
    if (found) answers.set(key, found);
    draw();
  };
  const found = answers.get(key);
  return el("section", { "aria-label": label }, el("h2", {}, label),
    form(key, "Run", [field("SQL", area("sql", { required: true, placeholder: example }))], run),
    found ? [el("p", { role: "status" }, found.total > found.rows.length
      ? `The first ${plain(found.rows.length)} of ${count(found.total, "row")}`
      : count(found.total, "row")), gridTable("Answer", found)]
      : null);
}

const gridTable = (name, { columns, rows }) => table(name, columns,
  rows.map((cells, at) => row(`row ${at}`,
    ...cells.map((cell) => el("td", { className: "body cell" }, cell)))), "No rows.");
