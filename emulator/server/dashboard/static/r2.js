// R2: buckets, and the objects of one.

view("r2", "R2",
  (at) => (at.path.length
    ? ask("/r2/objects", { bucket: at.path[0], prefix: at.query.get("prefix") || "",
      after: at.query.get("after") || "", rows: ROWS })
    : ask("/r2")),
  (found, at) => (at.path.length ? oneBucket(found, at) : allBuckets(found)));

function allBuckets({ buckets }) {
  return [title1("R2"), table("Buckets",
    ["Bucket", "Names and bindings", "Objects", "Bytes", "Uploads under way"],
    buckets.map((each) => row(each.name,
      heading(el("a", { href: href("r2", [each.name]) }, each.name)), each.names.join(", "),
      number(each.total), number(each.size), number(each.uploads))),
    "No Worker has an R2 bucket.")];
}

function oneBucket(found, at) {
  return [
    el("p", { className: "path" }, el("a", { href: href("r2") }, "R2")), title1(found.bucket),
    byPrefix(at), keyset(at, found.objects.length, found.total, "object", found.last),
    table("Objects", ["Key", "Bytes", "Uploaded", "ETag", "Metadata", "Body", "Actions"],
      found.objects.map((each) => objectRow(found.bucket, each)), "No objects."),
  ];
}

function objectRow(bucket, each) {
  const which = { bucket, key: each.key };
  return row(`key ${each.key}`, heading(each.key), number(each.size), time(each.uploaded),
    el("td", { className: "id", title: each.etag }, short(each.etag)),
    el("td", { className: "body" }, each.metadata ?? "–"),
    el("td", { className: "body" }, opening(`body ${bucket} ${each.key} ${each.etag}`, "Show",
      async () => (await ask("/r2/body", which)).body)),
    el("td", { className: "actions" }, button("Delete", async () => {
      if (await sure(`Delete ${each.key}?`, "Delete")) {
        await perform("/r2/delete", which, `${each.key} is deleted.`);
      }
    }, { name: `Delete ${each.key}` })));
}
