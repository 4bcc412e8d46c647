// Several frames at once: chosen by their boxes or by a search, changed in one step, doubled, or copied to another board.
import { SHOT } from "./desk_board.js";
import { agreed, BESIDE } from "./desk_forms.js";
import { $, $$, get, h, here, openDialog, post, say, show } from "./desk_parts.js";
import { flushTyped } from "./desk_typed.js";
import { go } from "./desk_route.js";

const FIELDS = ["place", ...SHOT, "duration"];
const counted = (number) => `${number} frame${number === 1 ? "" : "s"}`;
const option = (value, words) => h("option", { value }, words);

export class Several {
  // desk: {page(), change(edits)}; forms: with attempt(dialog, work) and hold(form, what, renew); tried(act): tells what fails.
  constructor(desk, forms, tried) {
    this.desk = desk;
    this.forms = forms;
    this.chosen = new Set();
    this.before = [];
    this.found = null;
    this.run = "";
    const each = (op, more = {}) => () => tried(() => desk.change([...this.chosen].sort((a, b) => b - a).map((frame) => ({ op, frame, ...more }))));
    const acts = {
      change: () => go({ run: here.run, frames: this.numbers(), dialog: "several" }), copy: () => go({ run: here.run, frames: this.numbers(), dialog: "copy" }),
      duplicate: each("duplicate"), lock: each("lock", { locked: true }), unlock: each("lock", { locked: false }), remove: each("remove"),
      none: () => { this.chosen.clear(); this.showChosen(); $("#choose-all").focus(); },
    };
    for (const button of $$("#several [data-several]")) button.addEventListener("click", acts[button.dataset.several]);
    $("#choose-all").addEventListener("click", () => {
      for (const card of desk.page().board.cards) if (!this.found || this.found.includes(card.number)) this.chosen.add(card.number);
      this.showChosen();
    });
    let timer = 0;
    $("#find").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => tried(() => this.find()), 200); });
    $("#bulk form").addEventListener("submit", (event) => { event.preventDefault(); this.save(); });
    $("#copy form").addEventListener("submit", (event) => { event.preventDefault(); this.copy(); });
  }

  numbers() { return [...this.chosen].sort((a, b) => a - b); }

  pick(number, chosen) {
    if (chosen) this.chosen.add(number); else this.chosen.delete(number);
    this.showChosen();
  }

  // A frame that was chosen stays chosen wherever it is by now, known by its picture, else by its number.
  show(page, ready) {
    const cards = page.board.cards, same = this.run === page.board.name;
    if (!same) { this.chosen.clear(); this.found = null; $("#find").value = ""; }
    const kept = [...this.chosen].map((number) => {
      const alike = cards.filter((card) => card.sha256 === this.before[number - 1]).map((card) => card.number).sort((a, b) => Math.abs(a - number) - Math.abs(b - number));
      return alike[0] ?? (cards.length === this.before.length ? number : null);
    });
    this.chosen = new Set(kept.filter(Boolean));
    this.run = page.board.name;
    this.before = cards.map((card) => card.sha256);
    this.ready = ready;
    show($("#finder"), page.board.finished);
    if (this.found && ready) this.find().catch(() => {});
    this.showChosen();
  }

  // A frame that is led to is shown, whatever was searched for.
  reveal(number) {
    if (!this.found || this.found.includes(number)) return;
    $("#find").value = $("#found").textContent = "";
    this.found = null;
    this.showChosen();
  }

  // The words of the frames are looked through as `katha redo --find` does.
  async find() {
    const words = $("#find").value.trim(), found = words ? await get(`api/find?words=${encodeURIComponent(words)}`) : null;
    if (words !== $("#find").value.trim()) return;
    this.found = found;
    $("#found").textContent = found ? (found.length ? `${counted(found.length)} of ${this.before.length}` : "No frame says this.") : "";
    this.showChosen();
  }

  showChosen() {
    for (const card of $$("#cards .card")) {
      const number = Number(card.dataset.number), box = $(".pick", card), chosen = this.chosen.has(number);
      show(card, !this.found || this.found.includes(number));
      card.classList.toggle("chosen", chosen);
      box.checked = chosen;
    }
    $("#choose-all").textContent = this.found ? "Choose these" : "Choose all";
    show($("#choose-all"), !this.found || this.found.length > 0);
    show($("#several"), this.chosen.size > 0);
    $("#several-said").textContent = `${counted(this.chosen.size)} chosen`;
    for (const button of $$("#several button")) button.disabled = !this.ready;
  }

  cards(frames) {
    const cards = this.desk.page().board.cards.filter((card) => frames.includes(card.number));
    if (!cards.length) throw new Error("No frame is chosen.");
    for (const number of frames) this.chosen.add(number);
    this.showChosen();
    return cards;
  }

  // What all have in common stands in the fields; an empty one whose frames differ stays as it is.
  open(frames) {
    const cards = this.cards(frames), form = $("#bulk form"), cast = this.desk.page().board.cast;
    this.editing = cards;
    this.common = {};
    $("#bulk-title").textContent = cards.length === 1 ? `Frame ${cards[0].number}` : `Frames ${cards.map((card) => card.number).join(", ")}`;
    $("#bulk-note").textContent = "What is left as it is changes nothing; what is written here goes into all of them, as one step.";
    const mixed = FIELDS.filter((name) => {
      const values = cards.filter((card) => card.kind === "scene" || name === "sound" || name === "duration").map((card) => String(card[name] ?? "")), field = form.elements[name];
      const differ = new Set(values).size > 1;
      this.common[name] = differ ? "" : values[0] ?? "";
      field.value = this.common[name];
      field.placeholder = differ ? "they differ" : "";
      return differ && name !== "duration";
    });
    form.elements.status.value = "";
    form.elements.put_in.replaceChildren(option("", "nobody"), ...cast.map((member) => option(member.name, member.name)));
    form.elements.take_out.replaceChildren(option("", "nobody"), ...cast.map((member) => option(member.name, member.name)));
    show($("#bulk-empty"), mixed.length > 0);
    $("#bulk-empty .checks").replaceChildren(...mixed.map((name) => h("label", {}, h("input", { type: "checkbox", name: "empty", value: name }), ` ${name.replaceAll("_", " ")}`)));
    this.forms.hold(form, `several ${cards.map((card) => card.number).join(" ")}`, () => this.open(frames));
    openDialog($("#bulk"));
  }

  edits() {
    const form = $("#bulk form"), fields = form.elements, empty = $$("[name=empty]:checked", form).map((box) => box.value);
    return this.editing.flatMap((card) => {
      const edit = { op: "change", frame: card.number };
      for (const name of FIELDS) {
        const value = fields[name].value.trim(), inside = card.kind === "scene" || BESIDE.includes(name) || name === "duration";
        if (!inside || String(card[name] ?? "") === value) continue;
        if (name === "duration") { if (value) edit.duration = Number(value); continue; }
        if (value !== this.common[name] || (value && !this.common[name])) edit[name] = value; else if (empty.includes(name) && card[name]) edit[name] = "";
      }
      const cast = [...new Set([...card.characters, fields.put_in.value])].filter((name) => name && name !== fields.take_out.value);
      if (card.kind === "scene" && cast.join("\n") !== card.characters.join("\n")) edit.characters = cast;
      const status = { none: "" }[fields.status.value] ?? fields.status.value;
      const talk = { op: "talk", frame: card.number, ...(fields.status.value && status !== card.status ? { status } : {}) };
      return [edit, talk].filter((item) => Object.keys(item).length > 2);
    });
  }

  save() {
    this.forms.attempt($("#bulk"), async () => {
      const edits = this.edits();
      if (edits.length) await this.desk.change(edits);
    });
  }

  async openCopy(frames) {
    this.copied = this.cards(frames).map((card) => card.number);
    const boards = (await get("api/runs", { run: "" })).filter((run) => run.name !== here.run && run.status === "finished");
    if (!boards.length) { go({ run: here.run }, { replace: true }); throw new Error("There is no other finished board to copy to."); }
    $("#copy-title").textContent = `Copy ${counted(this.copied.length)} to another board`;
    $("#copy [name=to]").replaceChildren(...boards.map((run) => option(run.name, run.title)));
    openDialog($("#copy"));
  }

  copy() {
    const to = $("#copy [name=to]").value, title = $("#copy [name=to]").selectedOptions[0].textContent;
    const send = async (pays) => (await (await post("copy", { to, frames: this.copied, agreed: pays })).json()).price;
    this.forms.attempt($("#copy"), async () => {
      const price = await send(false);
      if (price) await send(await agreed(price));
      await flushTyped();
      $("#copy").close();
      this.chosen.clear();
      go({ run: to });
      say(`${counted(this.copied.length)} copied to the end of ${title}.`);
    }, { close: false });
  }
}
