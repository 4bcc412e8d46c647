// What is typed stays until it is saved: the desk keeps it on disk from the first keystroke, so that Esc, a reload, a
// crash or a second tab lose nothing. Until the desk has it, the browser keeps it (the same folder has the same address).
import { $, $$, get, h, post, show } from "./desk_parts.js";

const pending = new Map(), touched = new Set();
let known = {}, timer = 0, shelf = "";

// The browser's own: a form that the desk did not take yet, by key, with the time.
function unsent() {
  try { return JSON.parse(localStorage.getItem(shelf)) || {}; } catch { return {}; }
}

function putAway(key, form) {
  const all = unsent();
  if (form) all[key] = form; else delete all[key];
  try { if (Object.keys(all).length) localStorage.setItem(shelf, JSON.stringify(all)); else localStorage.removeItem(shelf); } catch { /* it is full, or not allowed */ }
}

// What another page did not get rid of: that of an open one is younger.
const OLD = 2000;
function takeBack() {
  for (const [key, { values, at }] of Object.entries(unsent())) {
    if (pending.has(key) || Date.now() - at < OLD) continue;
    pending.set(key, values);
    touched.add(key);
  }
  if (pending.size) { clearTimeout(timer); timer = setTimeout(send, 250); }
}

// Returns the stories whose drawing broke off before it was planned, by key. What is typed while the desk answers is newer
// than its answer.
export async function loadTyped() {
  if (pending.size) await flushTyped();
  touched.clear();
  const found = await get("api/typed", { run: "" }), before = known;
  known = found.forms;
  for (const key of touched) if (before[key]) known[key] = before[key]; else delete known[key];
  shelf = `katha desk ${found.home}`;
  takeBack();
  return found.waiting;
}
export const typedAt = (key) => (pending.has(key) ? pending.get(key) : known[key]) || null;

export const typedKeys = () => [...new Set([...Object.keys(known), ...pending.keys()])].filter((key) => typedAt(key));

// values: the form's, or null where it was saved or taken back.
export function keepTyped(key, values) {
  pending.set(key, values);
  touched.add(key);
  putAway(key, { values, at: Date.now() });
  clearTimeout(timer);
  timer = setTimeout(send, 250);
}

// Wait until the desk has everything that was typed.
export async function flushTyped() {
  clearTimeout(timer);
  await send();
}

async function send() {
  for (const [key, values] of [...pending]) {
    try {
      await post("type", { key, values }, "");
    } catch {
      timer = setTimeout(send, 2000);
      return;
    }
    if (values) known[key] = values; else delete known[key];
    if (pending.get(key) === values) { pending.delete(key); putAway(key, null); }
  }
}

addEventListener("pagehide", () => {
  for (const [key, values] of pending) {
    fetch("api/type", { method: "POST", keepalive: true, headers: { "content-type": "application/json" }, body: JSON.stringify({ key, values }) });
  }
});

const boxes = (form) => $$("input[type=checkbox][name]", form);
const fields = (form) => $$("input[name], textarea[name], select[name]", form).filter((field) => !["file", "checkbox", "color", "radio"].includes(field.type));

export function valuesOf(form) {
  const values = Object.fromEntries(fields(form).map((field) => [field.name, field.value]));
  for (const box of boxes(form)) values[box.name] = [...(values[box.name] || []), ...(box.checked ? [box.value] : [])];
  return values;
}

export function fillForm(form, values) {
  for (const field of fields(form)) {
    const value = values[field.name];
    if (typeof value !== "string") continue;
    if (field.matches("select") && ![...field.options].some((option) => option.value === value)) field.add(new Option(value, value));
    field.value = value;
  }
  for (const box of boxes(form)) if (Array.isArray(values[box.name])) box.checked = values[box.name].includes(box.value);
}

// A form that was filled with what is saved: what was typed into it before goes over that, and is told; `renew` fills it
// with what is saved again.
export function holdForm(form, key, renew) {
  const saved = JSON.stringify(valuesOf(form)), typed = typedAt(key);
  if (!form.dataset.typed) form.addEventListener("input", () => keepTyped(form.dataset.typed, valuesOf(form)));
  form.dataset.typed = key;
  let told = $(".typed", form);
  if (!told) {
    told = h("p", { class: "typed note" }, `You ${form.elements?.strokes ? "drew" : "typed"} this before; it is not saved. `, h("button", { type: "button", class: "link" }, "Throw it away"));
    const place = $(".problem", form) || $("h3", form);
    place.after(told);
  }
  $("button", told).onclick = () => { keepTyped(key, null); renew(); };
  if (typed) fillForm(form, typed);
  show(told, Boolean(typed) && JSON.stringify(valuesOf(form)) !== saved);
}

export function forgetForm(form) {
  if (form?.dataset.typed) keepTyped(form.dataset.typed, null);
}
