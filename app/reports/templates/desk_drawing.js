// The drawing behind a frame: its layers are moved, scaled, recoloured, hidden, given another part of the cast, or changed
// in words. It stands in a shadow of its own, where its ids are nobody else's; the desk reads it again before it is kept.
import { $, at, h, openDialog, show } from "./desk_parts.js";

const PAINTED = ["fill", "stroke", "stop-color", "color"];
const ASIDE = new Set(["defs", "title", "desc"]);
const MOST_KEPT = 30;
const HUE = /^#(?:[0-9a-f]{3}|[0-9a-f]{6})$/i;
const target = (element) => element.getAttribute("href")?.slice(1) ?? "";
const named = (element) => (element.id || target(element) || { g: "a group", use: "a part" }[element.tagName] || "a shape").replace(/^f-/, "").replaceAll("-", " ");
const long = (hue) => (hue.length === 4 ? `#${[...hue.slice(1)].map((digit) => digit + digit).join("")}` : hue).toLowerCase();

export async function readDrawing(name) {
  const response = await fetch(at(`drawings/${name}`), { cache: "no-store" });
  if (!response.ok) throw new Error("The drawing of this frame is lost or cannot be used: draw the frame again.");
  const made = new DOMParser().parseFromString(await response.text(), "image/svg+xml").documentElement;
  if (made.tagName !== "svg") throw new Error("The drawing of this frame cannot be read.");
  return document.importNode(made, true);
}

// The elements that draw one: itself, what it holds, and what these refer to.
function closure(root, element) {
  const found = new Set(), waiting = [element];
  while (waiting.length) {
    const next = waiting.pop();
    if (!next || found.has(next)) continue;
    found.add(next);
    waiting.push(...next.children);
    const links = [target(next), ...["fill", "stroke"].map((name) => /url\(["']?#([^"')]+)/.exec(next.getAttribute(name) || "")?.[1])];
    waiting.push(...links.filter(Boolean).map((id) => root.getElementById(id)));
  }
  return [...found];
}

export class DrawingForm {
  // forms: with attempt(dialog, work, options); desk: {page(), change(edits), keepDrawing(svg, frame)}.
  constructor(desk, forms) {
    this.desk = desk;
    this.forms = forms;
    this.dialog = $("#drawing");
    this.fields = $("form", this.dialog).elements;
    this.host = $("#drawing-picture").attachShadow({ mode: "open" });
    $("form", this.dialog).addEventListener("submit", (event) => { event.preventDefault(); this.save(); });
    for (const [name, act] of Object.entries({
      undo: () => this.undo(), hide: () => this.hide(), recolour: () => this.recolour(), swap: () => this.swap(), ask: () => this.ask(),
      smaller: () => this.scale(0.9), larger: () => this.scale(1 / 0.9),
    })) $(`[data-drawing=${name}]`, this.dialog).addEventListener("click", act);
    this.fields.colour.addEventListener("change", () => { this.fields.hue.value = this.fields.colour.value; });
    this.fields.use.addEventListener("change", () => this.showParts());
    const place = $("#drawing-picture");
    new ResizeObserver(() => this.showBox()).observe(place);
    place.addEventListener("keydown", (event) => {
      const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
      if (x === undefined || !this.chosen) return;
      event.preventDefault();
      const step = event.shiftKey ? 1 : 10;
      this.keep();
      this.move(x * step, y * step);
    });
    this.host.addEventListener("pointerdown", (event) => this.take(event));
    this.host.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) this.host.addEventListener(end, () => { this.held = null; });
  }

  async open(card) {
    this.card = card;
    this.before = [];
    this.cast = await readDrawing("cast").catch(() => null);
    this.put(await readDrawing(card.sha256));
    $("#drawing-title").textContent = `The drawing of frame ${card.number}`;
    show($("#drawing-words"), this.desk.page().amends);
    this.fields.words.value = "";
    openDialog(this.dialog);
    this.choose(this.layers().at(-1));
  }

  put(svg) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Frame ${this.card.number}: ${this.card.caption || this.card.prompt}`);
    this.svg = svg;
    const style = h("style", {}, "svg { display: block; width: 100%; height: auto; cursor: grab; touch-action: none; } .box { position: absolute; border: 2px dashed #d0307a; pointer-events: none; }");
    this.box = h("div", { class: "box", hidden: true });
    this.host.replaceChildren(style, svg, this.box);
    this.chosen = null;
    this.showLayers();
  }

  layers() { return [...this.svg.children].filter((element) => !ASIDE.has(element.tagName)); }

  text() {
    const copy = this.svg.cloneNode(true);
    for (const name of ["role", "aria-label"]) copy.removeAttribute(name);
    return new XMLSerializer().serializeToString(copy);
  }

  // What can be taken back before it is saved; a saved step is a version of the board.
  keep() { this.before = [...this.before, this.text()].slice(-MOST_KEPT); this.showLayers(); }

  undo() {
    const last = this.before.pop(), at = this.layers().indexOf(this.layer());
    if (!last) return;
    this.put(document.importNode(new DOMParser().parseFromString(last, "image/svg+xml").documentElement, true));
    this.choose(this.layers()[at]);
  }

  layer() { return this.layers().find((element) => element.contains(this.chosen)); }

  showLayers() {
    const inner = this.layer();
    const button = (element, deep) => h("button", {
      type: "button", class: deep ? "deep" : "", "aria-pressed": String(element === this.chosen), onclick: () => this.choose(element),
    }, named(element), element.getAttribute("display") === "none" ? " (hidden)" : "");
    $("#drawing-layers").replaceChildren(...this.layers().toReversed().flatMap((element) => [
      h("li", {}, button(element, false)),
      ...(element === inner && element.tagName === "g" ? [...element.children].toReversed().map((child) => h("li", {}, button(child, true))) : []),
    ]));
    $("[data-drawing=undo]", this.dialog).disabled = !this.before.length;
  }

  choose(element) {
    this.chosen = element || null;
    show($("#drawing-tools"), Boolean(element));
    this.showLayers();
    this.showBox();
    if (!element) return;
    $("#drawing-chosen").textContent = named(element);
    const hidden = element.getAttribute("display") === "none";
    $("[data-drawing=hide]", this.dialog).textContent = hidden ? "Show it" : "Hide it";
    const hues = [...new Set(closure(this.svg, element).flatMap((one) => PAINTED.map((name) => one.getAttribute(name) || "")).filter((hue) => HUE.test(hue)).map(long))];
    this.fields.colour.replaceChildren(...hues.map((hue) => h("option", { value: hue }, hue)));
    show($("#drawing-colours"), hues.length > 0);
    this.fields.hue.value = hues[0] || "#000000";
    const uses = [element, ...element.querySelectorAll("use")].filter((one) => one.tagName === "use");
    this.uses = uses;
    this.fields.use.replaceChildren(...uses.map((one, at) => h("option", { value: at }, target(one))));
    this.showParts();
  }

  // The other parts of the cast whose names begin alike: heads for a head, hands for a hand.
  showParts() {
    const known = this.uses[Number(this.fields.use.value)] ? target(this.uses[Number(this.fields.use.value)]) : "";
    const begin = known.split("-").slice(0, known.split("-").length > 2 ? 2 : 1).join("-");
    const ids = this.cast ? [...this.cast.querySelectorAll("defs [id]")].map((part) => part.id) : [];
    const others = ids.filter((id) => known && id !== known && id.startsWith(`${begin}-`));
    this.fields.part.replaceChildren(...others.map((id) => h("option", { value: id }, id)));
    show($("#drawing-parts"), others.length > 0 || this.uses.length > 1);
    $("[data-drawing=swap]", this.dialog).disabled = !others.length;
  }

  showBox() {
    if (!this.box) return;
    const shown = this.chosen && this.chosen.getAttribute("display") !== "none";
    this.box.hidden = !shown;
    if (!shown) return;
    const [frame, part] = [$("#drawing-picture"), this.chosen].map((element) => element.getBoundingClientRect());
    for (const [name, value] of [["left", part.left - frame.left], ["top", part.top - frame.top], ["width", part.width], ["height", part.height]]) this.box.style[name] = `${value}px`;
  }

  // A first click takes the layer, another one in it what lies directly below.
  take(event) {
    const path = event.composedPath(), at = path.indexOf(this.svg);
    if (at < 1 || event.button > 0) return;
    const layer = path[at - 1], deeper = path[at - 2];
    if (ASIDE.has(layer.tagName)) return;
    const again = layer === this.layer() && deeper instanceof SVGElement && layer.tagName === "g";
    this.held = { x: event.clientX, y: event.clientY, moved: false, next: again && event.detail > 1 ? deeper : null };
    if (layer !== this.layer()) this.choose(layer); else if (this.held.next) this.choose(this.held.next);
    event.target.setPointerCapture?.(event.pointerId);
  }

  drag(event) {
    if (!this.held || !this.chosen) return;
    const [x, y] = [event.clientX - this.held.x, event.clientY - this.held.y];
    if (!this.held.moved && Math.hypot(x, y) < 4) return;
    if (!this.held.moved) this.keep();
    const scale = this.chosen.parentNode.getScreenCTM().inverse();
    this.held = { x: event.clientX, y: event.clientY, moved: true, next: null };
    this.move(scale.a * x + scale.c * y, scale.b * x + scale.d * y);
  }

  prepend(transform) {
    this.chosen.setAttribute("transform", `${transform} ${this.chosen.getAttribute("transform") || ""}`.trim());
    this.showBox();
  }

  move(x, y) {
    const known = /^translate\((-?[\d.]+) (-?[\d.]+)\)\s*/.exec(this.chosen.getAttribute("transform") || "");
    if (known) this.chosen.setAttribute("transform", this.chosen.getAttribute("transform").slice(known[0].length));
    const [left, top] = known ? known.slice(1).map(Number) : [0, 0];
    this.prepend(`translate(${Math.round((left + x) * 10) / 10} ${Math.round((top + y) * 10) / 10})`);
  }

  scale(by) {
    const part = this.chosen.getBoundingClientRect();
    const middle = new DOMPoint(part.left + part.width / 2, part.bottom).matrixTransform(this.chosen.parentNode.getScreenCTM().inverse());
    const [x, y] = [Math.round(middle.x), Math.round(middle.y)];
    this.keep();
    this.prepend(`translate(${x} ${y}) scale(${Math.round(by * 1000) / 1000}) translate(${-x} ${-y})`);
  }

  hide() {
    this.keep();
    if (this.chosen.getAttribute("display") === "none") this.chosen.removeAttribute("display"); else this.chosen.setAttribute("display", "none");
    this.choose(this.chosen);
  }

  recolour() {
    const [from, to] = [this.fields.colour.value, this.fields.hue.value];
    this.keep();
    for (const element of closure(this.svg, this.chosen)) {
      for (const name of PAINTED) if (HUE.test(element.getAttribute(name) || "") && long(element.getAttribute(name)) === from) element.setAttribute(name, to);
    }
    this.choose(this.chosen);
  }

  swap() {
    const use = this.uses[Number(this.fields.use.value)], id = this.fields.part.value;
    this.keep();
    const defs = this.svg.querySelector("defs") || this.svg.insertBefore(document.createElementNS(this.svg.namespaceURI, "defs"), this.svg.firstChild);
    for (const part of closure(this.cast, this.cast.getElementById(id)).toReversed()) {
      if (part.id && !this.svg.getElementById(part.id)) defs.append(document.importNode(part, true));
    }
    use.setAttribute("href", `#${id}`);
    this.choose(this.chosen);
  }

  async given() {
    const frame = this.forms.numberOf(this.card);
    return this.before.length ? [{ op: "picture", frame, picture: await this.desk.keepDrawing(this.text(), frame) }] : [];
  }

  save() {
    this.forms.attempt(this.dialog, async () => {
      const edits = await this.given();
      if (edits.length) await this.desk.change(edits);
    });
  }

  // In words: what was changed by hand is saved first, so that the model sees it.
  ask() {
    const words = this.fields.words.value.trim(), whole = $("#drawing-whole").checked;
    if (!words) return;
    const part = !whole && this.layer()?.id ? this.layer().id : "";
    this.forms.attempt(this.dialog, async () => {
      const edits = await this.given();
      if (edits.length) { await this.desk.change(edits); this.before = []; }
      await this.desk.change([{ op: "amend", frame: this.card.number, words, part }]);
    });
  }
}
