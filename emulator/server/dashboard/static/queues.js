// Queues: all of them, and one with its messages.

const PLACES = { waiting: "Waiting and delayed", flight: "In flight" };

view("queues", "Queues",
  (at) => (at.path.length
    ? ask("/queue", { queue: at.path[0], place: at.query.get("place") || "waiting",
      from: from(at), rows: ROWS })
    : ask("/queues")),
  (found, at) => (at.path.length ? oneQueue(found, at) : allQueues(found)));

const settingFields = (settings = {}) => [
  field("Delivery delay in seconds", input("delivery_delay", { type: "number", min: 0, max: 86400,
    placeholder: String(settings.delivery_delay ?? 0) })),
  field("Retention in seconds", input("message_retention_period", { type: "number", min: 60,
    max: 1209600, placeholder: String(settings.message_retention_period ?? 345600) })),
];

function allQueues({ queues }) {
  return [title1("Queues"), folded("create", "Create a queue", form("create", "Create", [
    field("Name", input("queue", { required: true, maxLength: 63 })), settingFields(),
  ], (given) => perform("/queues/create", given, ({ queue }) => `${queue} is created.`,
    ({ queue }) => href("queues", [queue])))), table("Queues",
    ["Queue", "Consumer", "Waiting", "Delayed", "In flight", "Acked", "Dead letters", "Dropped",
      "Expired", "Dead letters go to"],
    queues.map((queue) => row(queue.name,
      heading(el("a", { href: href("queues", [queue.name]) }, queue.name),
        queue.paused ? [" ", badge("paused")] : null,
        queue.dead_letters_of.length ? [" ", badge("dead letters", "bad")] : null),
      queue.consumer ?? "nobody", number(queue.waiting), number(queue.delayed),
      number(queue.flight), number(queue.counts.acked), number(queue.counts.dead_lettered),
      number(queue.counts.dropped), number(queue.counts.expired), gravelink(queue))),
    "No Worker has a queue.")];
}

function gravelink(queue) {
  const grave = queue.settings.dead_letter_queue;
  return grave ? el("a", { href: href("queues", [grave]) }, grave) : "–";
}

function oneQueue(queue, at) {
  return [
    el("p", { className: "path" }, el("a", { href: href("queues") }, "Queues")),
    title1(queue.name, queue.paused ? [" ", badge("paused")] : null),
    queueActions(queue), queueFacts(queue), sendForm(queue),
    el("nav", { className: "tabs", "aria-label": "Messages" },
      Object.entries(PLACES).map(([name, label]) => el("a", {
        href: here(at, { place: name === "waiting" ? undefined : name, from: undefined }),
        "aria-current": queue.place === name ? "page" : undefined,
      }, `${label} (${plain(name === "flight" ? queue.flight : queue.waiting + queue.delayed)})`))),
    pager(at, queue.total, from(at), ROWS),
    table("Messages", ["State", "Id", "Attempts", "Sent", "Due", "Type", "Bytes", "Body", "Actions"],
      queue.messages.map((message) => messageRow(queue, message)), "No messages."),
  ];
}

function queueActions(queue) {
  const name = { queue: queue.name }, all = queue.waiting + queue.delayed;
  return el("div", { className: "actions", role: "group", "aria-label": "Queue" },
    queue.paused
      ? button("Resume", () => perform("/queue/resume", name, "Deliveries go on."), { key: "pause" })
      : button("Pause", () => perform("/queue/pause", name, "Deliveries are paused."),
        { key: "pause" }),
    button("Purge", async () => {
      if (await sure(`Delete ${count(all, "message")} of ${queue.name}?`, "Purge")) {
        await perform("/queue/purge", name, `${queue.name} is empty.`);
      }
    }, { kind: "danger", disabled: !all }),
    button("Delete queue", async () => {
      if (await sure(`Delete ${queue.name} and its ${count(all, "message")}?`, "Delete")) {
        await perform("/queues/delete", name, `${queue.name} is deleted.`, () => href("queues"));
      }
    }, { kind: "danger" }),
    queue.dead_letters_of.map((to) => button(`Send all back to ${to}`, () =>
      perform("/queue/send-back", { ...name, to }, (done) =>
        `${count(done.count, "message")} sent back to ${to}.`), { disabled: !all, key: `to ${to}` })));
}

function queueFacts(queue) {
  const { settings } = queue;
  return [
    facts(["Consumer", queue.consumer ?? "nobody"], ["Waiting", plain(queue.waiting)],
      ["Delayed", plain(queue.delayed)], ["In flight", plain(queue.flight)],
      ["Oldest", time(queue.oldest)], ["Acked", plain(queue.counts.acked)],
      ["Dead letters", plain(queue.counts.dead_lettered)],
      ["Dropped", plain(queue.counts.dropped)], ["Expired", plain(queue.counts.expired)],
      ["Dead letters go to", gravelink(queue)]),
    folded("settings", "Settings", facts(...Object.entries(settings)
      .map(([name, each]) => [name, each === null ? "–" : String(each)])),
    form("configure", "Change", settingFields(settings), (given) =>
      perform("/queues/configure", { queue: queue.name, ...given }, "The settings are changed."))),
  ];
}

function sendForm(queue) {
  return folded("send", "Send messages", form("send", "Send", [
    field("Body", area("body", { required: true, placeholder: '{"hello": "world"}' })),
    field("Type", choice("type", [["json", "JSON"], ["text", "text"], ["v8", "V8 (from JSON)"]])),
    field("Delay in seconds", input("delay", { type: "number", min: 0, max: 86400 })),
    field("How many", input("count", { type: "number", min: 1, max: 10000 })),
  ], (given) => perform("/queue/send", {
    queue: queue.name, body: given.body, type: given.type, delay: given.delay ?? 0,
    count: given.count ?? 1,
  }, (done) => `${count(done.count, "message")} sent.`)));
}

function messageRow(queue, message) {
  const { seq } = message, which = { queue: queue.name, seq }, of = `message ${message.id}`;
  const isStored = queue.place === "waiting";
  return row(`message ${seq}`, badge(message.state), el("td", { className: "id", title: message.id },
    short(message.id)),
    number(message.attempts), time(message.sent), dueTime(message.due, overview?.now),
    message.type, number(message.size),
    el("td", { className: "body" }, opening(`body ${queue.name} ${seq}`, message.body,
      async () => (await ask("/queue/message", which)).body)),
    el("td", { className: "actions" }, isStored ? [
      message.state === "delayed" ? button("Deliver now", () =>
        perform("/queue/hasten", which, "The message is available now."),
      { name: `Deliver ${of} now`, key: "hasten" }) : null,
      queue.dead_letters_of.map((to) => button("Retry", () =>
        perform("/queue/send-back", { ...which, to }, `Sent back to ${to}.`),
      { name: `Send ${of} back to ${to}`, key: `to ${to}` })),
      button("Delete", () => perform("/queue/delete", which, "The message is deleted."),
        { name: `Delete ${of}`, key: "delete" }),
    ] : null));
}
