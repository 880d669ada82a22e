// Turning what is on the page into what should be there, so that focus, selection, scrolling and
// what somebody has typed stay.
//
// Children belong together by `data-key`, else by tag in order. A field keeps its value, and a
// `details` stays open.

function patchPage(page, fresh) {
  const active = document.activeElement;
  patch(page, fresh);
  // What is moved loses its focus.
  if (active !== document.activeElement && active?.isConnected) {
    active.focus({ preventScroll: true });
  }
}

const HANDLERS = ["onclick", "onsubmit", "oninput", "onchange", "ontoggle", "onkeydown"];
const KEPT = ["open", "value", "checked"];

function patch(node, fresh) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (node.data !== fresh.data) node.data = fresh.data;
    return;
  }
  if (fresh.hold) return; // it looks after itself
  for (const { name } of [...node.attributes]) {
    if (!fresh.hasAttribute(name) && !KEPT.includes(name)) node.removeAttribute(name);
  }
  for (const { name, value: now } of fresh.attributes) {
    if (name === "style" || KEPT.includes(name) && node.nodeName !== "OPTION") continue;
    if (node.getAttribute(name) !== now) node.setAttribute(name, now);
  }
  if (node.style.cssText !== fresh.style.cssText) node.style.cssText = fresh.style.cssText;
  for (const name of HANDLERS) node[name] = fresh[name];
  if (node.nodeName !== "TEXTAREA") patchChildren(node, fresh);
}

function patchChildren(node, fresh) {
  const keyed = new Map();
  for (const child of node.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let at = node.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = wanted.dataset?.key;
    const same = key ? keyed.get(key) : at;
    const fits = same && same.nodeName === wanted.nodeName && same.dataset?.key === key;
    if (!fits) {
      const next = at?.nextSibling;
      if (at && !key && !at.dataset?.key) {
        at.replaceWith(wanted);
        at = next;
      } else node.insertBefore(wanted, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else node.insertBefore(same, at);
    patch(same, wanted);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}
