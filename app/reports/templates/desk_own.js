// A picture of one's own in a frame: the part of it that counts, its levels, and how the frame will show it. The desk makes
// it ready, here and when it is saved, so that what is seen is what is kept.
import { $, $$, openDialog, problem, sendOwn, show } from "./desk_parts.js";

const SIDE = 1400;  // pixels of what is sent to be looked at; what is kept is made from the file itself
const MOST = 60000000;
const PART = ["left", "top", "width", "height"];
const tenth = (value) => Math.round(value * 10) / 10;
const within = (value, low, high) => Math.min(high, Math.max(low, value));

// The file smaller, where the browser can read it; else as it is.
async function smaller(file) {
  try {
    const picture = await createImageBitmap(file), scale = Math.min(1, SIDE / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.max(1, Math.round(picture.width * scale)), Math.max(1, Math.round(picture.height * scale))];
    const paint = canvas.getContext("2d");
    paint.fillStyle = "white";
    paint.fillRect(0, 0, canvas.width, canvas.height);
    paint.drawImage(picture, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  } catch { return null; }
}

export class OwnForm {
  // desk: {change(edits)}; forms: with attempt(dialog, work), numberOf(card) and
  // holdFrame(form, what, card, renew).
  constructor(desk, forms) {
    this.desk = desk;
    this.forms = forms;
    this.dialog = $("#own");
    this.form = $("form", this.dialog);
    this.fields = this.form.elements;
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.save(); });
    this.fields.file.addEventListener("change", () => this.take());
    this.form.addEventListener("input", (event) => { if (event.target !== this.fields.file) this.changed(); });
    $("[data-own=whole]", this.dialog).addEventListener("click", () => this.part(0, 0, 100, 100));
    const source = $("#own-source");
    const at = (event) => {
      const box = source.getBoundingClientRect();
      return [within(100 * (event.clientX - box.left) / box.width, 0, 100), within(100 * (event.clientY - box.top) / box.height, 0, 100)];
    };
    source.addEventListener("pointerdown", (event) => {
      if (event.button > 0) return;
      event.preventDefault();
      source.setPointerCapture(event.pointerId);
      this.from = at(event);
    });
    source.addEventListener("pointermove", (event) => {
      if (!this.from) return;
      const [x, y] = at(event), [left, top] = this.from;
      if (Math.abs(x - left) > 2 && Math.abs(y - top) > 2) this.part(Math.min(x, left), Math.min(y, top), Math.abs(x - left), Math.abs(y - top));
    });
    for (const end of ["pointerup", "pointercancel"]) source.addEventListener(end, () => { this.from = null; });
  }

  open(card) {
    this.card = card;
    this.file = this.look = null;
    this.form.reset();
    show($("#own-made"), false);
    $("[value=save]", this.dialog).disabled = true;
    $("#own-title").textContent = `A picture of your own for frame ${card.number}`;
    this.forms.holdFrame(this.form, "own picture of frame", card, () => this.open(card));
    openDialog(this.dialog);
    this.showBox();
  }

  async take() {
    const [file] = this.fields.file.files;
    if (!file) return;
    problem(this.dialog, "");
    if (file.size > MOST) { problem(this.dialog, "This picture is larger than 60 MB: scale it down."); return; }
    const shown = await smaller(file), image = $("#own-source img");
    this.file = file;
    this.look = shown || file;
    show($("#own-source"), Boolean(shown));
    show($("#own-source-note"), Boolean(shown));
    if (shown) { URL.revokeObjectURL(image.src); image.src = URL.createObjectURL(shown); }
    this.changed();
  }

  part(...values) {
    PART.forEach((name, at) => { this.fields[name].value = tenth(values[at]); });
    this.form.dispatchEvent(new Event("input"));
  }

  // As the desk takes it: no part reaches out of the picture, and black is below white.
  how() {
    const [left, top] = ["left", "top"].map((name) => tenth(within(Number(this.fields[name].value) || 0, 0, 99)));
    const width = tenth(within(Number(this.fields.width.value) || 100, 1, 100 - left)), height = tenth(within(Number(this.fields.height.value) || 100, 1, 100 - top));
    const { levels, black, white, fill } = this.fields, made = {};
    if (left || top || width < 100 || height < 100) made.crop = [left, top, width, height].join(",");
    if (levels.value === "auto") made.levels = "auto";
    if (levels.value === "own") made.levels = `${Math.min(Number(black.value), Number(white.value) - 1)},${white.value}`;
    if (fill.value) made.fill = "1";
    return made;
  }

  showBox() {
    const [left, top, width, height] = (this.how().crop || "0,0,100,100").split(",");
    Object.assign($("#own-source .box").style, { left: `${left}%`, top: `${top}%`, width: `${width}%`, height: `${height}%` });
    for (const label of $$(".own-levels", this.dialog)) show(label, this.fields.levels.value === "own");
  }

  changed() {
    this.showBox();
    if (!this.look) return;
    show($("#own-made"), true);
    this.asking?.abort();
    const asking = this.asking = new AbortController();
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const image = $("#own-shown");
      try {
        const made = await sendOwn(this.look, this.how(), { look: true, signal: asking.signal });
        URL.revokeObjectURL(image.src);
        image.src = URL.createObjectURL(made);
        problem(this.dialog, "");
        $("[value=save]", this.dialog).disabled = false;
      } catch (error) {
        if (!asking.signal.aborted) { problem(this.dialog, error.message); $("[value=save]", this.dialog).disabled = true; }
      }
    }, 150);
  }

  save() {
    if (!this.file) return;
    this.forms.attempt(this.dialog, async () => {
      const frame = this.forms.numberOf(this.card), picture = await sendOwn(this.file, this.how());
      await this.desk.change([{ op: "picture", frame, picture }]);
    });
  }
}
