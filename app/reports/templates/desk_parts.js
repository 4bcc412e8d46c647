// What the other scripts stand on: elements, requests, messages. Text becomes text, never markup: there is no innerHTML.

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// An element: h("button", {type: "button", onclick: act, "data-focus": "x"}, "Words", child)
export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

export const show = (element, shown) => { element.hidden = !shown; };
// The board that the page shows; requests are about it, or about another that they name.
export const here = { run: "" };
export const at = (address, run = here.run) => (run ? `${address}${address.includes("?") ? "&" : "?"}run=${encodeURIComponent(run)}` : address);

export const picture = (sha256, small = true, run = here.run) => at(`panels/${sha256}${small ? "?small=1" : ""}`, run);
export const image = (sha256, alt, run = here.run) =>
  sha256 ? h("img", { src: picture(sha256, true, run), alt, loading: "lazy", draggable: "false" })
         : h("div", { class: "blank", role: "img", "aria-label": `${alt}, not drawn yet` });

// What was waited for on a board that was left: it goes on there.
export class Left extends Error {}

export class Refused extends Error {
  constructor(words, stale) { super(words); this.stale = stale; }
}

// Nobody answers any more, or another desk does. What was typed into a form that is kept (`data-typed`) is in the browser.
export class Gone extends Error {
  constructor() { super("The desk is closed. Start `katha desk` again and open the address that it prints: what is saved is there, and what you typed is kept in this browser and stands in its fields again."); }
}
const goneFor = (dialog) => ($("[data-typed]", dialog) ? "The desk is closed, and this is not saved. What you typed is kept in this browser: start `katha desk` again, open the address that it prints, and save it there."
  : "The desk is closed, and this is not saved. It is kept nowhere else: copy what you need before you close this tab.");

async function asked(address, options) {
  try { return await answered(await fetch(address, options)); } catch (error) {
    throw error instanceof TypeError ? new Gone() : error;
  }
}

async function answered(response) {
  if (response.ok) return response;
  if (response.status === 403) throw new Gone();
  let told = {};
  try { told = await response.json(); } catch { /* not one of ours: the status says enough */ }
  throw new Refused(told.error || `The desk answered ${response.status}.`, Boolean(told.stale));
}

export async function get(address, { run = here.run, signal = null } = {}) {
  return (await asked(at(address, run), { cache: "no-store", signal })).json();
}

export async function post(name, body = {}, run = here.run) {
  return asked(at(`api/${name}`, run), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
}

// A file as it is, within the desk's limit; gives the hash that it is kept under.
export async function sendPicture(file) {
  if (file.size > 20000000) throw new Error("This picture is larger than 20 MB: scale it down.");
  return (await (await asked(at("api/picture"), { method: "POST", headers: { "content-type": "image/*" }, body: file })).json()).sha256;
}

// A person's own picture for a frame: kept, and its hash given; with `look` nothing is kept, and how it would look is given.
export async function sendOwn(picture, how = {}, { look = false, signal = null } = {}) {
  const words = new URLSearchParams({ ...how, ...(look ? { look: "1" } : {}) });
  const response = await asked(at(`api/own?${words}`), { method: "POST", headers: { "content-type": "image/*" }, body: picture, signal });
  return look ? response.blob() : (await response.json()).sha256;
}

// The files of a board with their names; those of other kinds are left out, and told. A request takes 60 MB, of which a
// third is its form.
const boardFile = (file) => $("#import [name=files]").accept.split(",").some((ending) => file.name.toLowerCase().endsWith(ending));
export function leftOut(files) {
  const others = files.filter((file) => !boardFile(file) && !file.name.startsWith(".")).map((file) => file.name);
  return others.length ? `Left out, since they are no pictures, no PDF and no project: ${others.slice(0, 8).join(", ")}${others.length > 8 ? ` and ${others.length - 8} more` : ""}.` : "";
}
export async function readFiles(files) {
  const wanted = files.filter(boardFile);
  if (!wanted.length) throw new Error("These are no pictures, no PDF and no project of Storyboarder.");
  if (wanted.reduce((sum, file) => sum + file.size, 0) > 44000000) throw new Error("These files are larger than 44 MB together: `katha run --import` takes them.");
  return Promise.all(wanted.map(async (file) => ({ name: file.webkitRelativePath || file.name, data: await base64(file) })));
}

export const base64 = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result.split(",")[1] || "");
  reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
  reader.readAsDataURL(file);
});

// What a file is that holds no words, by its first bytes: its name may say another thing.
const BEGINS = [["89504e470d0a1a0a", "a picture"], ["ffd8ff", "a picture"], ["47494638", "a picture"], ["424d", "a picture"], ["49492a00", "a picture"], ["4d4d002a", "a picture"],
  ["25504446", "a PDF"], ["504b0304", "an archive (a .docx and an .epub are ones, too)"], ["d0cf11e0", "an old Word document"], ["7b5c727466", "a document with formats (RTF)"]];
function kindOf(data) {
  const hex = [...data.slice(0, 12)].map((byte) => byte.toString(16).padStart(2, "0")).join(""), later = hex.slice(8);
  if (hex.startsWith("52494646") && hex.endsWith("57454250")) return "a picture";
  if (later.startsWith("66747970")) return /^(6176|6865|6d6966|6d7366)/.test(later.slice(8)) ? "a picture" : "a film";
  const known = BEGINS.find(([first]) => hex.startsWith(first) && (first !== "424d" || data.includes(0)));
  if (known) return known[1];
  const wide = hex.startsWith("fffe") || hex.startsWith("feff");
  return !wide && data.slice(0, 8000).includes(0) ? "a file of a program" : "";
}
const DRAWN = ["a picture", "a PDF"];

// A text in UTF-8, or in UTF-16 with its mark; what is none is named, with where to bring it.
export async function readText(file) {
  const data = new Uint8Array(await file.arrayBuffer()), kind = kindOf(data);
  if (DRAWN.includes(kind)) throw new Error(`${file.name} is ${kind}, not a text. To bring drawn frames, open “Or bring a board that is drawn already”.`);
  if (kind) throw new Error(`${file.name} is ${kind}, not a plain text. Open it in its own program, copy the story, and paste it here.`);
  const wide = data[0] === 0xff && data[1] === 0xfe ? "utf-16le" : data[0] === 0xfe && data[1] === 0xff ? "utf-16be" : "utf-8";
  try { return new TextDecoder(wide, { fatal: true }).decode(data); } catch {
    throw new Error(`${file.name} is a text in an old encoding, not in UTF-8. Open it in an editor and copy the story from there, or save it as UTF-8.`);
  }
}

// details: what those want to know who look after the questions.
export function say(words, details = []) {
  $("#status").textContent = words;
  show($("#details"), details.length > 0);
  $("#details p").textContent = details.join(" ");
}

export function alarm(words) {
  const place = $("#alert");
  place.textContent = words || "";
  show(place, Boolean(words));
}

// The row of a dialog's buttons where a person is: what goes wrong is said there, where it is in sight.
export const rowOf = (dialog) => {
  const here = dialog.contains(document.activeElement) ? document.activeElement.closest(".row:has(button)") : null;
  return here || $$(".row:has([type=submit])", dialog).at(-1) || null;
};

// words: a sentence, or what was thrown. The row may be one that is built again: its place is remembered.
const places = new WeakMap();
export function problem(dialog, words, row = dialog.matches("dialog") ? rowOf(dialog) : null) {
  const place = places.get(dialog) || $(".problem", dialog);
  places.set(dialog, place);
  if (words && row) row.prepend(place);
  place.textContent = (words instanceof Gone ? goneFor(dialog) : words?.message ?? words) || "";
  show(place, Boolean(words));
}

export function openDialog(dialog) {
  problem(dialog, "");
  if (!dialog.open) dialog.showModal();
}

for (const dialog of $$("dialog")) {
  $(".close", dialog)?.addEventListener("click", () => dialog.close());
}

// What is rebuilt keeps the focus where it was, by the name that an element has in `data-focus`.
export function keepFocus(rebuild) {
  const name = document.activeElement?.dataset?.focus;
  rebuild();
  if (name) $$("[data-focus]").find((element) => element.dataset.focus === name)?.focus({ preventScroll: true });
}

// Make `place` hold what `make` gives for each item, in order. What was made for an equal item stays as it is, so that a
// board of many frames is not built again for a change of one; `key` is the text that tells two items apart.
const built = new WeakMap();
export function fill(place, items, key, make) {
  const before = built.get(place) || new Map(), now = new Map();
  const wanted = items.map((item, at) => {
    const name = key(item, at), node = before.get(name) || make(item);
    now.set(name, node);
    return node;
  });
  built.set(place, now);
  if (wanted.length !== place.children.length || wanted.some((node, at) => place.children[at] !== node)) place.replaceChildren(...wanted);
}

export const shown = (...nodes) => nodes.filter((node) => node !== null && node !== undefined && node !== "");
