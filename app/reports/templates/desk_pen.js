// A pen over a frame: strokes above the picture, with the frames around as an onion skin. What is drawn is kept as a draft on
// the desk after every stroke. Where the frame is SVG the strokes become a layer of it, else a picture with it.
import { readDrawing } from "./desk_drawing.js";
import { $, $$, openDialog, picture, problem, sendOwn, show } from "./desk_parts.js";
import { flushTyped } from "./desk_typed.js";
import { getStroke } from "./perfect_freehand.js";

const MOST = 450000;  // letters of a draft, about 40,000 points
const NEAR = 1.5;  // pixels of the picture between two points of a stroke
const SVG = "http://www.w3.org/2000/svg";
const tenth = (value) => Math.round(value * 10) / 10;

// A stroke is {hue, width, real, points: [[x, y, pressure], ...]} in pixels of the picture; real: the pressure was measured.
export const written = (strokes) => strokes.map(({ hue, width, real, points }) =>
  `${hue} ${width} ${real ? 1 : 0} ${points.map(([x, y, pressure]) => `${tenth(x)},${tenth(y)},${Math.round(pressure * 100)}`).join(" ")}`).join("\n");
export const readStrokes = (text) => text.split("\n").filter(Boolean).map((line) => {
  const [hue, width, real, ...points] = line.split(" ");
  return { hue, width: Number(width), real: real === "1", points: points.map((point) => { const [x, y, pressure] = point.split(",").map(Number); return [x, y, pressure / 100]; }) };
});

// The outline of a stroke as the data of a path; place(x, y): where a point of the picture lies.
function outline(stroke, done, place = (x, y) => [x, y]) {
  const found = getStroke(stroke.points, { size: stroke.width, thinning: stroke.width < 10 ? 0.5 : 0.35, streamline: 0.4, simulatePressure: !stroke.real, last: done });
  const at = ([x, y]) => place(x, y).map(tenth).join(" ");
  if (found.length < 3) return "";
  return found.reduce((path, point, index) => {
    const next = found[(index + 1) % found.length];
    return `${path}${index ? "" : "Q"}${at(point)} ${at([(point[0] + next[0]) / 2, (point[1] + next[1]) / 2])} `;
  }, `M${at(found[0])} `) + "Z";
}

// Where a stroke is rubbed out it is parted; what is far from (x, y) stays as it is. radius: with half of the stroke's width,
// since its ends are round.
export function rubbed(stroke, x, y, radius) {
  const { points } = stroke, near = (a, b) => {
    const [dx, dy] = [b[0] - a[0], b[1] - a[1]], long = dx * dx + dy * dy;
    const share = long ? Math.min(1, Math.max(0, ((x - a[0]) * dx + (y - a[1]) * dy) / long)) : 0;
    return Math.hypot(a[0] + share * dx - x, a[1] + share * dy - y) < radius;
  };
  if (!points.some((point, at) => near(point, points[at + 1] || point))) return [stroke];
  const dense = points.flatMap((point, at) => {
    const next = points[at + 1];
    const parts = next ? Math.max(1, Math.ceil(Math.hypot(next[0] - point[0], next[1] - point[1]) / (radius / 2))) : 1;
    return Array.from({ length: parts }, (_, part) => point.map((value, index) => value + (next ? (next[index] - value) * part / parts : 0)));
  });
  const pieces = [[]];
  for (const point of dense) if (Math.hypot(point[0] - x, point[1] - y) < radius) pieces.push([]); else pieces.at(-1).push(point);
  return pieces.filter((piece) => piece.length > 1).map((piece) => ({ ...stroke, points: piece }));
}

export class PenForm {
  // desk: {page(), change(edits), keepDrawing(svg, frame)}; forms: with attempt(dialog, work), numberOf(card) and
  // holdFrame(form, what, card, renew).
  constructor(desk, forms) {
    this.desk = desk;
    this.forms = forms;
    this.dialog = $("#pen");
    this.form = $("form", this.dialog);
    this.fields = this.form.elements;
    this.canvas = $("#pen-canvas");
    this.paint = this.canvas.getContext("2d");
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.save(); });
    for (const [name, act] of Object.entries({ undo: () => this.step(this.past, this.future), redo: () => this.step(this.future, this.past), clear: () => this.put([]) })) {
      $(`[data-pen=${name}]`, this.dialog).addEventListener("click", act);
    }
    for (const range of $$("[data-onion]", this.dialog)) range.addEventListener("input", () => this.showLayers());
    for (const box of [$("#pen-shown"), this.fields.paper]) box.addEventListener("change", () => this.showLayers());
    $("#pen-hue").addEventListener("input", () => { this.fields.hue.value = ""; });
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", () => this.up());
    this.canvas.addEventListener("pointercancel", () => this.up());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.showAt());
    this.canvas.addEventListener("blur", () => { if (this.key_) this.up(); show($("#pen-at"), false); });
    document.addEventListener("keydown", (event) => {
      if (!this.dialog.open || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      event.preventDefault();
      if (event.shiftKey) this.step(this.future, this.past); else this.step(this.past, this.future);
    });
    this.dialog.addEventListener("close", () => this.up());
  }

  async open(card) {
    const cards = this.desk.page().board.cards;
    this.card = card;
    this.held = null;
    this.key_ = false;
    $("#pen-title").textContent = `Draw on frame ${card.number}`;
    this.canvas.setAttribute("aria-label", `Frame ${card.number}: ${card.caption || card.prompt}`);
    const sources = { picture: card, before: cards[card.number - 2], after: cards[card.number] };
    for (const [name, other] of Object.entries(sources)) {
      const image = $(`#pen-${name}`);
      image.src = other?.sha256 ? picture(other.sha256, false) : "data:,";
      if (name !== "picture") show($(`#pen-${name}-layer`), Boolean(other?.sha256));
    }
    const base = $("#pen-picture");
    try { await base.decode(); } catch { throw new Error("The picture of this frame is lost: draw the frame again."); }
    [this.canvas.width, this.canvas.height] = [base.naturalWidth, base.naturalHeight];
    this.at = [base.naturalWidth / 2, base.naturalHeight / 2];
    this.fields.strokes.value = "";
    this.fields.paper.checked = false;
    for (const range of $$("[data-onion]", this.dialog)) range.value = range.dataset.onion === "picture" ? 100 : 0;
    $("#pen-shown").checked = true;
    this.forms.holdFrame(this.form, "pen over frame", card, () => this.open(card));
    this.strokes = readStrokes(this.fields.strokes.value);
    this.past = this.strokes.map((_, at) => this.strokes.slice(0, at));
    this.future = [];
    openDialog(this.dialog);
    this.showLayers();
    this.draw();
  }

  // Everything that was drawn is one list, another one after every step, so that a step back is the list before.
  put(strokes) {
    if (strokes === this.strokes) return;
    const text = written(strokes);
    if (text.length > MOST && text.length > this.fields.strokes.value.length) {
      problem(this.dialog, "The pen's layer is full: save it, and go on above it.");
      this.draw();
      return;
    }
    this.past.push(this.strokes);
    this.future = [];
    this.set(strokes);
  }

  step(from, to) {
    this.up();
    if (!from.length) return;
    to.push(this.strokes);
    this.set(from.pop());
  }

  set(strokes) {
    this.strokes = strokes;
    this.fields.strokes.value = written(strokes);
    this.form.dispatchEvent(new Event("input"));
    flushTyped();
    this.draw();
  }

  hue() { return this.fields.hue.value || $("#pen-hue").value; }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * this.canvas.width / box.width, (event.clientY - box.top) * this.canvas.height / box.height, event.pointerType === "pen" ? event.pressure : 0.5];
  }

  // A hand that rests beside a pen draws nothing.
  down(event) {
    this.pens ||= event.pointerType === "pen";
    if (!event.isPrimary || (event.button !== 0 && event.button !== 5) || (this.pens && event.pointerType === "touch")) return;
    event.preventDefault();
    this.canvas.focus({ preventScroll: true });
    show($("#pen-at"), false);
    this.canvas.setPointerCapture(event.pointerId);
    this.begin(this.point(event), event.pointerType === "pen", event.button === 5);
  }

  begin(point, real, rubs) {
    const width = Number(this.fields.width.value) * this.canvas.width / 1000;
    this.held = { rubs: rubs || this.fields.tool.value === "eraser", width, strokes: this.strokes, stroke: { hue: this.hue(), width: tenth(width), real, points: [] } };
    this.add(point);
  }

  move(event) {
    if (!this.held || this.key_) return;
    const events = event.getCoalescedEvents?.() || [];
    for (const one of events.length ? events : [event]) this.add(this.point(one));
  }

  add(point) {
    const { rubs, width, stroke } = this.held, last = stroke.points.at(-1);
    if (last && Math.hypot(point[0] - last[0], point[1] - last[1]) < NEAR) return;
    stroke.points.push(point);
    if (rubs) {
      const radius = Math.max(2 * NEAR, width / 2), from = last || point, parts = Math.max(1, Math.ceil(Math.hypot(point[0] - from[0], point[1] - from[1]) / radius));
      for (let part = 1; part <= parts; part += 1) {
        const [x, y] = [0, 1].map((index) => from[index] + (point[index] - from[index]) * part / parts);
        const left = this.held.strokes.flatMap((one) => rubbed(one, x, y, radius + one.width / 2));
        if (left.length !== this.held.strokes.length || left.some((one, index) => one !== this.held.strokes[index])) this.held.strokes = left;
      }
    }
    this.draw();
  }

  up() {
    const held = this.held;
    this.held = null;
    this.key_ = false;
    if (!held) return;
    this.put(held.rubs ? held.strokes : [...this.strokes, held.stroke]);
  }

  key(event) {
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
    if (event.key === " ") {
      event.preventDefault();
      if (this.key_) this.up(); else { this.key_ = true; this.begin([...this.at, 0.5], false, false); }
      this.showAt();
    } else if (x !== undefined) {
      event.preventDefault();
      const step = event.shiftKey ? 2 : 16, limits = [this.canvas.width, this.canvas.height];
      this.at = this.at.map((value, index) => Math.min(limits[index], Math.max(0, value + [x, y][index] * step)));
      if (this.key_) this.add([...this.at, 0.5]);
      this.showAt();
    }
  }

  showAt() {
    show($("#pen-at"), this.canvas.matches(":focus-visible"));
    $("#pen-at").classList.toggle("down", this.key_);
    Object.assign($("#pen-at").style, { left: `${100 * this.at[0] / this.canvas.width}%`, top: `${100 * this.at[1] / this.canvas.height}%` });
  }

  showLayers() {
    for (const range of $$("[data-onion]", this.dialog)) $(`#pen-${range.dataset.onion}`).style.opacity = range.value / 100;
    $("#pen-picture").style.visibility = this.fields.paper.checked ? "hidden" : "";
    this.canvas.style.opacity = $("#pen-shown").checked ? 1 : 0;
  }

  draw() {
    const now = this.held?.rubs ? this.held.strokes : this.held ? [...this.strokes, this.held.stroke] : this.strokes;
    this.paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.fillInto(this.paint, now);
    for (const [name, able] of [["undo", this.past.length], ["redo", this.future.length], ["clear", this.strokes.length]]) $(`[data-pen=${name}]`, this.dialog).disabled = !able;
    if (this.dialog.open && document.activeElement === document.body) this.canvas.focus({ preventScroll: true });  // a button that was pressed has no more to do
  }

  fillInto(paint, strokes) {
    for (const stroke of strokes) {
      paint.fillStyle = stroke.hue;
      paint.fill(this.path(stroke));
    }
  }

  // The path of a stroke that is done is made once.
  path(stroke) {
    const done = stroke !== this.held?.stroke, known = done ? this.paths?.get(stroke) : null;
    if (known) return known;
    const made = new Path2D(outline(stroke, done));
    this.paths ||= new WeakMap();
    if (done) this.paths.set(stroke, made);
    return made;
  }

  // The strokes as a layer of the frame's own SVG, above what is there; on white paper instead of it.
  async layered() {
    const paper = this.fields.paper.checked, { width, height } = this.canvas;
    const svg = paper ? document.createElementNS(SVG, "svg") : await readDrawing(this.card.sha256);
    const put = (parent, name, given) => { const made = parent.appendChild(document.createElementNS(SVG, name)); for (const [key, value] of Object.entries(given)) made.setAttribute(key, value); return made; };
    if (paper) {
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      put(svg, "rect", { id: "paper", width, height, fill: "#ffffff" });
    }
    const view = (svg.getAttribute("viewBox") || `0 0 ${width} ${height}`).split(/[\s,]+/).map(Number), scale = Math.min(width / view[2], height / view[3]);
    const place = (x, y) => [view[0] + (x - (width - view[2] * scale) / 2) / scale, view[1] + (y - (height - view[3] * scale) / 2) / scale];
    let id = "pen";
    for (let number = 2; svg.querySelector(`[id="${id}"]`); number += 1) id = `pen-${number}`;
    const layer = put(svg, "g", { id });
    for (const stroke of this.strokes) { const d = outline(stroke, true, place); if (d) put(layer, "path", { d, fill: stroke.hue }); }
    return new XMLSerializer().serializeToString(svg);
  }

  async flat() {
    const made = document.createElement("canvas"), paint = made.getContext("2d");
    [made.width, made.height] = [this.canvas.width, this.canvas.height];
    paint.fillStyle = "white";
    paint.fillRect(0, 0, made.width, made.height);
    if (!this.fields.paper.checked) paint.drawImage($("#pen-picture"), 0, 0);
    this.fillInto(paint, this.strokes);
    return new Promise((resolve) => { made.toBlob(resolve, "image/png"); });
  }

  save() {
    this.up();
    this.forms.attempt(this.dialog, async () => {
      if (!this.strokes.length && !this.fields.paper.checked) return;
      await flushTyped();
      const frame = this.forms.numberOf(this.card);
      const kept = this.card.drawing ? await this.desk.keepDrawing(await this.layered(), frame) : await sendOwn(await this.flat());
      await this.desk.change([{ op: "picture", frame, picture: kept }]);
    });
  }
}
