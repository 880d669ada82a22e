// The frame of the dashboard: where one is (the address after #), asking the server, drawing.
//
// A view has `load(place)`, which asks for data, and `show(data, place)`, which makes nodes of it.
// It is loaded again when the server says that something happened, and drawn over what is there.

const API = "/cdn-cgi/emulator/dashboard";
const ROWS = 100, SOON = 60, UNHURRIED = 2; // rows of a page, milliseconds, times the last load
const views = new Map();
const view = (name, label, load, show) => views.set(name, { name, label, load, show });

let overview = null, data = null, shownAt = "", problem = "", said = null, live = true;
let keeps = false, busy = false, again = false, waiting = 0, took = 0, connected = true, clockAt = 0;

// -- where one is --------------------------------------------------------------------------------

function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name, ...rest] = path.split("/").map(decoded);
  const of = views.has(name) ? name : views.keys().next().value;
  return { name: of, path: views.has(name) ? rest : [], query: new URLSearchParams(query || "") };
}
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
function href(name, path = [], query = {}) {
  const given = Object.entries(query).filter(([, each]) => each !== undefined && each !== "");
  const asked = String(new URLSearchParams(given));
  return `#/${[name, ...path].map(encodeURIComponent).join("/")}${asked ? `?${asked}` : ""}`;
}
// The same place with other parameters.
const here = (at, query) => href(at.name, at.path, { ...Object.fromEntries(at.query), ...query });
const from = (at) => Number(at.query.get("from")) || 0;
const goTo = (address) => { location.hash = address; };

// -- asking --------------------------------------------------------------------------------------

async function ask(path, asked = {}) {
  const given = Object.entries(asked).filter(([, each]) => each !== undefined && each !== null);
  return answer(await fetch(`${API}${path}?${new URLSearchParams(given)}`, { cache: "no-store" }));
}

async function answer(response) {
  const text = await response.text();
  let told;
  try {
    told = JSON.parse(text);
  } catch {
    told = { error: text || `the server answered ${response.status}` };
  }
  if (!response.ok) throw new Error(told.error || `the server answered ${response.status}`);
  return told;
}

// Do something, say how it went, and show what came of it, here or at the place `next` names.
async function perform(path, body, done, next) {
  let result = null;
  try {
    result = await answer(await fetch(API + path, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    }));
    say(typeof done === "function" ? done(result) : done);
  } catch (error) {
    say(error.message, true);
  }
  if (result && next) {
    keeps = true;
    goTo(next(result));
  } else await refresh();
  return result;
}

function say(text, isError = false) {
  said = text ? { text, isError } : null;
  draw();
}

// Ask before what cannot be undone.
function sure(question, verb) {
  return new Promise((resolve) => {
    const end = (is) => () => { box.close(); box.remove(); resolve(is); };
    const no = button("Cancel", end(false)), yes = button(verb, end(true), { kind: "danger" });
    const box = el("dialog", { "aria-label": verb, oncancel: end(false) },
      el("p", {}, question), el("div", { className: "actions" }, no, yes));
    document.body.append(box);
    box.showModal();
    no.focus();
  });
}

// -- loading -------------------------------------------------------------------------------------

async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  clearTimeout(waiting);
  waiting = 0;
  const at = place(), address = location.hash, began = performance.now();
  try {
    const asked = views.get(at.name).load(at);
    asked.catch(() => {});
    overview = await ask("/overview");
    clockAt = performance.now();
    connected = true;
    data = overview.running ? await asked : null;
    problem = "";
  } catch (error) {
    connected = !(error instanceof TypeError);
    data = null;
    problem = connected ? error.message : "The server does not answer.";
  }
  took = performance.now() - began;
  busy = false;
  if (address !== location.hash) {
    again = false;
    await refresh();
    return;
  }
  const isNew = shownAt !== address;
  shownAt = address;
  draw();
  if (isNew && began > firstDraw) document.querySelector("main h1")?.focus();
  if (again) soon();
  again = false;
}
const firstDraw = performance.now() + 50;

function soon() {
  if (!waiting) waiting = setTimeout(refresh, Math.max(SOON, took * UNHURRIED));
}

function follow() {
  const source = new EventSource(`${API}/changes`);
  source.addEventListener("change", () => {
    if (live && !document.hidden) soon();
    else again = true;
  });
  source.onerror = () => {
    if (!connected) return;
    connected = false;
    if (live) soon();
  };
  document.addEventListener("visibilitychange", () => { if (live && !document.hidden) soon(); });
}

// -- drawing -------------------------------------------------------------------------------------

function draw() {
  const at = place(), of = views.get(at.name);
  document.title = `${of.label} – Workers emulator`;
  const fresh = el("div", { id: "page" }, top(), el("div", { className: "columns" },
    menu(at), main(at, of)));
  const page = document.getElementById("page");
  if (page) patchPage(page, fresh);
  else document.body.append(fresh);
  tick();
}

function top() {
  const move = (duration) => () => perform("/clock/advance", { duration },
    ({ now }) => `Time moved on by ${duration}, to ${clockText(now)}.`);
  return el("header", {},
    el("a", { className: "skip", href: "#main", onclick: skip }, "Skip to the content"),
    el("strong", {}, "Workers emulator"),
    el("span", { className: "workers" }, (overview?.workers || []).join(", ")),
    el("span", { className: "clock", role: "group", "aria-label": "Clock" },
      el("span", { id: "now", className: "now" }),
      button("+1 h", move("1 hour"), { name: "Move the clock on by 1 hour" }),
      button("+3 d", move("3 days"), { name: "Move the clock on by 3 days" }),
      button("Next", toNext, { name: "Move the clock to what is due next" })),
    button(live ? "Live" : "Stopped", () => { live = !live; if (live) refresh(); else draw(); },
      { pressed: live, name: "Show what happens as it happens" }),
    el("span", { className: `link ${connected ? "" : "bad"}`, role: "status" },
      connected ? "" : "The server does not answer; trying again."));
}

const toNext = () => perform("/clock/next", {},
  ({ now }) => `Time moved on to what was due next, ${clockText(now)}.`);

function skip(event) {
  event.preventDefault();
  document.querySelector("main").focus();
}

// On the machine's clock time goes on between two answers.
function tick() {
  const node = document.getElementById("now");
  if (!node || !overview?.now) return;
  const passed = overview.real && overview.running ? performance.now() - clockAt : 0;
  const now = new Date(micros(overview.now) / 1000 + passed).toISOString();
  const text = `${now.slice(0, 19).replace("T", " ")} UTC`;
  if (node.textContent !== text) node.textContent = text;
}

function menu(at) {
  const counts = overview?.counts || {};
  return el("nav", { "aria-label": "Views" }, el("ul", {}, [...views.values()].map((each) =>
    el("li", {}, el("a", {
      href: href(each.name), "aria-current": each.name === at.name ? "page" : undefined,
    }, each.label, counts[each.name]
      ? [" ", el("span", { className: "many" }, plain(counts[each.name]))] : null)))));
}

function main(at, of) {
  const parts = [];
  if (overview?.problem) {
    parts.push(el("section", { className: "problem", role: "alert", "data-key": "problem" },
      el("h2", {}, overview.problem.title), value(overview.problem.text, "What is wrong"),
      el("p", {}, overview.running ? "The code of before runs on." : "Nothing runs.")));
  }
  if (said) {
    parts.push(el("div", { className: `said ${said.isError ? "bad" : ""}`, "data-key": "said",
      role: said.isError ? "alert" : "status" }, el("span", {}, said.text),
    button("✕", () => say(null), { name: "Dismiss" })));
  }
  let body;
  if (problem) body = [title1(of.label), el("p", { className: "bad", role: "alert" }, problem)];
  else if (!data || shownAt !== location.hash) body = [title1(of.label)];
  else body = of.show(data, at);
  return el("main", { id: "main", tabIndex: -1 }, parts,
    el("div", { "data-key": `view ${[at.name, ...at.path].join("/")}` }, body));
}

const title1 = (...children) => el("h1", { tabIndex: -1 }, ...children);
