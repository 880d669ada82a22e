// Workflows: all of them, the instances of one, and one instance with its steps.

const STATUSES = [
  "queued", "running", "waiting", "paused", "waitingForPause", "complete", "errored", "terminated",
];
const OVER = ["complete", "errored", "terminated"];

view("workflows", "Workflows",
  (at) => {
    const [workflow, id] = at.path;
    if (id !== undefined) return ask("/instance", { workflow, id });
    if (workflow === undefined) return ask("/workflows");
    return ask("/workflow", { workflow, status: at.query.get("status") || "",
      id: at.query.get("id") || "", from: from(at), rows: ROWS });
  },
  (found, at) => {
    if (at.path.length > 1) return oneInstance(found);
    return at.path.length ? oneWorkflow(found, at) : allWorkflows(found);
  });

const tally = (counts) => Object.entries(counts)
  .map(([status, many]) => [badge(status), ` ${plain(many)} `]);

function allWorkflows({ workflows }) {
  return [title1("Workflows"), table("Workflows", ["Workflow", "Instances", "By status"],
    workflows.map((each) => row(each.name,
      heading(el("a", { href: href("workflows", [each.name]) }, each.name)),
      number(each.total), tally(each.counts))), "No Worker has a Workflow.")];
}

function oneWorkflow(workflow, at) {
  const { name } = workflow;
  const seek = (event) => goTo(here(at, {
    [event.target.name]: event.target.value || undefined, from: undefined,
  }));
  return [
    el("p", { className: "path" }, el("a", { href: href("workflows") }, "Workflows")),
    title1(name), el("p", {}, tally(workflow.counts)),
    folded("create", "Create an instance", form("create", "Create", [
      field("Id", input("id", { placeholder: "random" })),
      field("Params (JSON)", area("params", { placeholder: "{}" })),
    ], (given) => perform("/workflow/create", { workflow: name, ...given },
      ({ id }) => `${id} is created.`, ({ id }) => href("workflows", [name, id])))),
    el("div", { className: "filters", role: "search" },
      field("Status", choice("status", [["", "any"], ...STATUSES], { onchange: seek })),
      field("Id contains", input("id", { type: "search", onchange: seek,
        value: at.query.get("id") || "" }))),
    pager(at, workflow.found, from(at), ROWS),
    table("Instances", ["Instance", "Status", "Created", "Ended", "Trigger", "Error"],
      workflow.instances.map((each) => row(each.id,
        heading(el("a", { href: href("workflows", [name, each.id]) }, each.id)),
        badge(each.status), time(each.created), time(each.ended), each.trigger,
        el("td", { className: "body" }, each.error ?? "–"))), "No instances."),
  ];
}

function oneInstance(one) {
  return [
    el("p", { className: "path" }, el("a", { href: href("workflows") }, "Workflows"), " / ",
      el("a", { href: href("workflows", [one.workflow]) }, one.workflow)),
    title1(one.id, " ", badge(one.status)),
    instanceActions(one),
    facts(["Created", time(one.created)], ["Started", time(one.started)],
      ["Ended", time(one.ended)], ["Trigger", one.trigger], ["Executions", plain(one.executions)],
      ["Rollback", one.rollback ?? (one.rolling_back ? "under way" : null)]),
    one.error ? [el("h2", {}, "Error"), value(one.error, "Error")] : null,
    one.output !== null ? [el("h2", {}, "Output"), value(one.output, "Output")] : null,
    folded("params", "Params", value(one.params ?? "–", "Params")),
    el("h2", {}, "Steps"), steps(one),
    folded("history", `History (${plain(one.history.length + one.earlier)})`,
      one.earlier ? el("p", {}, `${count(one.earlier, "earlier row")} not shown.`) : null,
      table("History", ["#", "Time", "Event", "Step", "Data"], one.history.map((each) =>
        row(`row ${each.id}`, number(each.id), time(each.at), each.event, each.target ?? "–",
          el("td", { className: "body" }, each.data))))),
  ];
}

function instanceActions(one) {
  const which = { workflow: one.workflow, id: one.id }, over = OVER.includes(one.status);
  const isPaused = ["paused", "waitingForPause"].includes(one.status);
  return [
    el("div", { className: "actions", role: "group", "aria-label": "Instance" },
      isPaused
        ? button("Resume", () => perform("/instance/resume", which, "It goes on."),
          { key: "pause" })
        : button("Pause", () => perform("/instance/pause", which, "It is being paused."),
          { disabled: over, key: "pause" }),
      button("Terminate", () => end(which, false), { kind: "danger", disabled: over }),
      button("Terminate and roll back", () => end(which, true), { kind: "danger", disabled: over }),
      button("Restart", async () => {
        if (await sure(`Run ${one.id} again from its beginning?`, "Restart")) {
          await perform("/instance/restart", which, "It starts again.");
        }
      }),
      button("Delete", async () => {
        if (!await sure(`Forget ${one.id} and all its steps?`, "Delete")) return;
        await perform("/instance/delete", which, `${one.id} is deleted.`,
          () => href("workflows", [one.workflow]));
      }, { kind: "danger" })),
    over ? null : folded("event", "Send an event", form("event", "Send event", [
      field("Type", input("type", { required: true, list: null })),
      field("Payload (JSON)", area("payload", { placeholder: "null" })),
    ], (given) => perform("/instance/event", { ...which, ...given },
      `The event ${given.type} is sent.`))),
  ];
}

async function end(which, rollback) {
  const how = rollback ? "End it, and undo its steps?" : "End it now, without undoing anything?";
  if (await sure(`${which.id}: ${how}`, "Terminate")) {
    await perform("/instance/terminate", { ...which, rollback }, "It is terminated.");
  }
}

// -- steps ---------------------------------------------------------------------------------------

function steps(one) {
  const scale = axis(one);
  return table("Steps", ["Step", "Kind", "State", "When", "Attempts", "Result", "Actions"],
    one.steps.map((step) => row(`step ${step.key}`,
      heading(step.name, step.count > 1 ? el("small", {}, ` #${step.count}`) : null),
      step.kind, stateOf(step, one), el("td", { className: "when" }, track(step, scale, one),
        el("span", {}, time(step.started))),
      attempts(step), result(step),
      button("Restart here", async () => {
        if (await sure(`Run ${one.id} again from ${step.name}?`, "Restart")) {
          await perform("/instance/restart", {
            workflow: one.workflow, id: one.id, step: step.key,
          }, `It runs again from ${step.name}.`);
        }
      }, { name: `Restart from ${step.name}` }))), "No step has started.");
}

function stateOf(step, one) {
  const state = step.state === "waiting" && step.kind === "sleep" ? "sleeping" : step.state;
  const left = step.due && step.state === "waiting";
  return el("td", {}, badge(state), left ? el("small", {},
    ` ${step.kind === "do" ? "tries again" : step.kind === "sleep" ? "wakes" : "times out"} `,
    `in ${duration(Math.max(micros(step.due) - micros(one.now), 0))}`) : null);
}

function attempts(step) {
  if (!step.attempts.length) return "–";
  return el("ol", { className: "attempts" }, step.attempts.map((each) => {
    const state = each.state === "open" && step.state !== "running" && !each.ended
      ? "lost" : each.state;
    return el("li", {}, each.rollback ? "rollback " : "", badge(state === "open" ? "running" : state),
      each.ended ? ` ${duration(micros(each.ended) - micros(each.started))}` : "",
      each.error ? el("div", { className: "bad body" }, each.error) : null);
  }));
}

function result(step) {
  const text = step.error ?? step.output;
  if (text === null) return "–";
  return el("td", { className: "body" }, text.length < 80
    ? el("code", { className: step.error ? "bad" : "" }, text)
    : el("details", { "data-key": "result" }, el("summary", {}, `${text.replace(/\s+/g, " ").slice(0, 70)}…`),
      value(text, "Result")));
}

// Where an instant stands, in per cent: in order, with gaps in between that grow by their logarithm.
function axis(one) {
  const all = one.steps.flatMap((step) => [step.started, step.ended, step.due,
    ...step.attempts.flatMap((each) => [each.started, each.ended])]);
  const instants = [...new Set([one.created, one.now, ...all].filter(Boolean).map(micros))]
    .sort((first, second) => first - second);
  const places = new Map();
  let at = 0, before = instants[0];
  for (const instant of instants) {
    if (instant !== before) at += 0.4 + 0.3 * Math.log10(instant - before + 1);
    before = instant;
    places.set(instant, at);
  }
  return (text) => (places.get(micros(text)) / (at || 1)) * 100;
}

function track(step, scale, one) {
  const bars = step.kind === "do" && step.attempts.length
    ? step.attempts.map((each) => bar(each.started, each.ended ?? one.now, each.state, scale))
    : [bar(step.started, step.ended ?? one.now, step.state, scale)];
  if (step.due && step.state === "waiting") bars.push(bar(one.now, step.due, "ahead", scale));
  return el("div", { className: "track", "aria-hidden": "true" }, bars);
}

function bar(start, stop, state, scale) {
  const node = el("span", { className: `bar ${TONES[state] || state}` });
  const [left, right] = [scale(start), scale(stop)];
  node.style.cssText = `left: ${left}%; width: ${Math.max(right - left, 0)}%`;
  return node;
}
