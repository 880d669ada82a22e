// KV: namespaces, and the keys of one.

view("kv", "KV",
  (at) => (at.path.length
    ? ask("/kv/keys", { id: at.path[0], prefix: at.query.get("prefix") || "",
      after: at.query.get("after") || "", rows: ROWS })
    : ask("/kv")),
  (found, at) => (at.path.length ? oneNamespace(found, at) : allNamespaces(found)));

function allNamespaces({ namespaces }) {
  return [title1("KV"), table("Namespaces", ["Namespace", "Bindings", "Keys"],
    namespaces.map((each) => row(each.id,
      heading(el("a", { href: href("kv", [each.id]) }, each.id)),
      each.bindings.join(", ") || "–", number(each.total))), "No Worker has a KV namespace.")];
}

function oneNamespace(space, at) {
  const { id } = space, last = space.keys.length ? space.keys[space.keys.length - 1].name : "";
  return [
    el("p", { className: "path" }, el("a", { href: href("kv") }, "KV")), title1(id),
    space.writable ? folded("put", "Write a key", form("put", "Write", [
      field("Key", input("key", { required: true })),
      field("Value", area("value")),
      field("Metadata (JSON)", input("metadata")),
      field("Expires in seconds", input("ttl", { type: "number", min: 60 })),
    ], (given) => perform("/kv/put", { id, ...given, ttl: given.ttl ?? 0 },
      `${given.key} is written.`))) : null,
    byPrefix(at), keyset(at, space.keys.length, space.total, "key", space.more ? last : null),
    table("Keys", ["Key", "Bytes", "Expires", "Metadata", "Value", "Actions"],
      space.keys.map((each) => keyRow(space, each)), "No keys."),
  ];
}

function keyRow(space, each) {
  const which = { id: space.id, key: each.name };
  return row(`key ${each.name}`, heading(each.name), number(each.size),
    dueTime(each.expires, overview?.now), el("td", { className: "body" }, each.metadata ?? "–"),
    el("td", { className: "body" }, opening(`value ${space.id} ${each.name} ${each.size} ${
      each.value}`, each.value, async () => (await ask("/kv/value", which)).value)),
    el("td", { className: "actions" }, space.writable ? button("Delete", async () => {
      if (await sure(`Delete ${each.name}?`, "Delete")) {
        await perform("/kv/delete", which, `${each.name} is deleted.`);
      }
    }, { name: `Delete ${each.name}` }) : null));
}

const byPrefix = (at) => el("div", { className: "filters", role: "search" },
  field("Keys begin with", input("prefix", { type: "search",
    value: at.query.get("prefix") || "", onchange: (event) => goTo(here(at, {
      prefix: event.target.value || undefined, after: undefined })) })));

// A part of a list that goes on behind a key.
function keyset(at, shown, total, what, last) {
  const off = (label) => el("span", { className: "off" }, label);
  return el("nav", { className: "pager", "aria-label": "Pages" },
    at.query.get("after") ? el("a", { href: here(at, { after: undefined }) }, "First")
      : off("First"),
    el("span", {}, `${plain(shown)} of ${count(total, what)}`),
    last === null ? off("Next") : el("a", { href: here(at, { after: last }) }, "Next"));
}
