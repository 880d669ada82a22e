// Faults: sites that were met, what is planned and what fired; and arming more.

view("faults", "Faults",
  (at) => ask("/faults", { site: at.query.get("site") || "", from: from(at), rows: ROWS }),
  (found, at) => [
    title1("Faults"),
    el("h2", {}, "Planned"),
    table("Planned", ["Fault", "State"], found.plan.map(({ fault, why }, place) =>
      row(`${fault} ${place}`, heading(el("code", {}, fault)),
        why ? [badge("armed", "hold"), el("div", {}, el("small", {}, why))]
          : badge("fired", "bad"))), "No fault is planned."),
    el("div", { className: "actions" }, button("Disarm all", () =>
      perform("/faults/clear", {}, "No fault is planned any more."),
    { disabled: !found.plan.length })),
    form("plan", "Arm", [field("Plan", input("plan", { required: true, size: 40,
      placeholder: "batch.emails#2:lose_ack; send.emails#1:fail" }))],
    (given) => arm(given)),
    el("h2", {}, "Sites met"),
    el("div", { className: "filters", role: "search" }, field("Site contains", input("site", {
      type: "search", value: at.query.get("site") || "", onchange: (event) => goTo(here(at, {
        site: event.target.value || undefined, from: undefined })) }))),
    pager(at, found.total, from(at), ROWS),
    table("Sites", ["Site", "Met", "Strike there"],
      found.sites.map(siteRow), "No site was met yet: send a request."),
    folded("fired", `Fired (${plain(found.fired.length)})`, el("ol", {},
      found.fired.map((fault) => el("li", {}, el("code", {}, fault))))),
    folded("forms", "All kinds of sites", table("Kinds", ["Site", "One occurrence is"],
      found.forms.map((each) => row(each.form, heading(el("code", {}, each.form)),
        each.occurrence)))),
    el("h2", {}, "All Workers"),
    el("div", { className: "actions", role: "group", "aria-label": "All Workers" },
      button("Evict", () => perform("/workers/strike", { what: "evict" },
        "The memory of all Workers is dropped.")),
      button("Crash", () => strike("crash", "Cut the power of all Workers? What is in flight is "
        + "lost, and redelivered or run again."), { kind: "danger" }),
      button("Restart", () => strike("restart", "Crash, and rebuild everything from what is "
        + "durable?"), { kind: "danger" })),
  ]);

const arm = (given) => perform("/faults/arm", given,
  ({ armed }) => `Armed: ${armed.join("; ")}`);

async function strike(what, question) {
  if (await sure(question, what === "crash" ? "Crash" : "Restart")) {
    await perform("/workers/strike", { what }, "It is done.");
  }
}

function siteRow(each) {
  const { site } = each;
  return row(site, heading(el("code", {}, each.label)), number(each.met),
    form(`arm ${site}`, "Arm", [
      field("Action", choice("action", each.actions.map((action) =>
        [action.name, `${action.name}${action.needs ? "(…)" : ""} – ${action.class}`]))),
      field("Argument", input("argument", { size: 8, placeholder: "30 s, 503" })),
      field("Occurrence", input("occurrence", { type: "number", min: 1,
        placeholder: String(each.met + 1), size: 6 })),
    ], (given) => arm({ ...given, site, occurrence: given.occurrence ?? 0 })));
}
