// What opens over the board: the editor of a frame, its takes, the cast, versions, export, and the price.
import { SHOT } from "./desk_board.js";
import { DrawingForm } from "./desk_drawing.js";
import { OwnForm } from "./desk_own.js";
import { PenForm } from "./desk_pen.js";
import { $, $$, at as about, base64, h, image, Left, openDialog, picture, post, problem, rowOf, sendPicture, show } from "./desk_parts.js";
import { closes, go, route } from "./desk_route.js";
import { forgetForm, holdForm, keepTyped, typedAt, typedKeys } from "./desk_typed.js";

const LOOKS = ["build", "skin", "hair", "clothing"];
const FIELDS = ["prompt", "caption", "place", ...SHOT, "dialogue", "action", "notes"];
// What an inserted frame has of them.
export const BESIDE = ["prompt", "caption", "dialogue", "action", "notes", "sound"];
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
// A prompt of several sentences, as the words of two frames.
const halves = (text) => {
  const sentences = text.match(/[^.!?]+[.!?]*["\u201d]*\s*/g) || [];
  const first = sentences.slice(0, Math.ceil(sentences.length / 2)).join("").trim();
  return sentences.length > 1 ? [first, sentences.slice(Math.ceil(sentences.length / 2)).join("").trim()] : [text, ""];
};
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// Ask whether to pay; free work is not asked about.
export function agreed(price) {
  if (price.free) return Promise.resolve(false);
  const dialog = $("#agree");
  const each = price.picture === null ? "What a picture costs is not known" : `A picture costs about $${price.picture.toFixed(3)}`;
  $("#agree-words").textContent = price.words || `${each}; what depends on it is judged again. What is in the cache costs nothing.`;
  openAgree(dialog);
  return new Promise((resolve, reject) => {
    dialog.addEventListener("close", () => (dialog.returnValue === "yes" ? resolve(true) : reject(new Error("Nothing was paid."))), { once: true });
  });
}

function openAgree(dialog) {
  dialog.returnValue = "no";
  dialog.showModal();
}

// A canvas over a picture that is painted on by mouse, pen or finger, or by rectangles from fields; its picture is white
// where it was painted and black elsewhere.
function paintable(canvas, fields) {
  const paint = canvas.getContext("2d");
  let last = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
  };
  const stroke = (event) => {
    const now = at(event);
    paint.strokeStyle = "#d0307a";
    paint.lineCap = "round";
    paint.lineWidth = canvas.width * Number(fields.brush.value) / 100;
    paint.beginPath();
    paint.moveTo(...last);
    paint.lineTo(...now);
    paint.stroke();
    last = now;
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    canvas.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => { if (last) stroke(event); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { last = null; });
  return {
    reset(width, height) { canvas.width = width; canvas.height = height; },
    clear() { paint.clearRect(0, 0, canvas.width, canvas.height); },
    add() {
      const [left, top, width, height] = ["left", "top", "width", "height"].map((name) => Number(fields[name].value) / 100);
      paint.fillStyle = "#d0307a";
      paint.fillRect(left * canvas.width, top * canvas.height, width * canvas.width, height * canvas.height);
    },
    picture() {
      const made = document.createElement("canvas"), to = made.getContext("2d");
      made.width = canvas.width;
      made.height = canvas.height;
      to.drawImage(canvas, 0, 0);
      for (const [order, colour] of [["source-in", "white"], ["destination-over", "black"]]) {
        to.globalCompositeOperation = order;
        to.fillStyle = colour;
        to.fillRect(0, 0, made.width, made.height);
      }
      return new Promise((resolve) => { made.toBlob(resolve, "image/png"); });
    },
  };
}

export class Forms {
  // desk: {page(), change(edits), takes(frame, prompt), go(version), versions()}; each change resolves when it is done.
  constructor(desk) {
    this.desk = desk;
    this.card = null;
    this.waiting = null;
    $("#edit form").addEventListener("submit", (event) => { event.preventDefault(); this.save(); });
    $("#edit [data-edit=add]").addEventListener("click", () => this.more(null, this.card.number));
    $("#edit [data-edit=split]").addEventListener("click", () => this.more(this.card, this.card.number));
    $("#edit [data-edit=remove]").addEventListener("click", () => this.attempt($("#edit"), () => this.desk.change([{ op: "remove", frame: this.card.number }])));
    $("#edit [data-edit=duplicate]").addEventListener("click", () => this.duplicate());
    for (const name of ["pen", "own", "part"]) $(`#edit-${name}`).addEventListener("click", () => go({ ...route(), dialog: name }));
    $("#more form").addEventListener("submit", (event) => { event.preventDefault(); this.addOrSplit(); });
    $("#cast-new").addEventListener("submit", (event) => { event.preventDefault(); this.addCharacter(); });
    $("#takes form").addEventListener("submit", (event) => { event.preventDefault(); this.drawTakes(); });
    $("#export form").addEventListener("submit", (event) => { event.preventDefault(); this.download(); });
    for (const name of ["to", "layout"]) $(`#export [name=${name}]`).addEventListener("change", () => this.exportFields());
    $("#inpaint form").addEventListener("submit", (event) => { event.preventDefault(); this.inpaint(); });
    this.drawing = new DrawingForm(desk, this);
    this.pen = new PenForm(desk, this);
    this.own = new OwnForm(desk, this);
    $("#edit-drawing").addEventListener("click", () => this.attempt($("#edit"), async () => {
      await this.drawing.open(this.card);
      go({ ...route(), dialog: "drawing" });
    }));
    for (const [name, dialogs] of Object.entries({ edit: ["edit"], takes: ["takes"], inpaint: ["part"], drawing: ["drawing"], pen: ["pen"], own: ["own"], bulk: ["several"], copy: ["copy"], cast: ["cast"], history: ["history"], export: ["export"], more: ["add"] })) closes($(`#${name}`), dialogs);
    this.mask = paintable($("#inpaint-mask"), $("#inpaint form").elements);
    for (const button of $$("#inpaint [data-mask]")) button.addEventListener("click", () => this.mask[button.dataset.mask]());
    $("#takes").addEventListener("close", () => { this.taken = null; });
  }

  // While work is under way the buttons of a dialog wait; what fails is told in it, and what was typed stays. It makes
  // way for a picture that is drawn, and for what a chat window is asked, and comes back where that comes to nothing.
  async attempt(dialog, work, { close = true } = {}) {
    const taken = this.taken, was = route(), row = rowOf(dialog);
    problem(dialog, "");
    const buttons = $$("button:not(.close)", dialog);
    buttons.forEach((button) => { button.disabled = true; });
    const back = () => { if (!dialog.open) { this.taken = taken; dialog.showModal(); go(was, { replace: true }); } };
    this.waiting = close ? dialog : null;
    this.attempted = dialog;
    this.aside = false;
    try {
      await work();
      if (close) { forgetForm($("form", dialog)); dialog.close(); } else if (this.aside) back();
    } catch (error) {
      if (error instanceof Left) return;
      back();
      problem(dialog, error, row);
    } finally {
      this.waiting = this.attempted = null;
      buttons.forEach((button) => { button.disabled = false; });
    }
  }

  drawn() {
    this.waiting?.close();
    this.waiting = null;
  }

  // A chat window is asked on the page: no dialog may stand before it.
  asked() {
    if (!this.attempted?.open) return;
    this.aside = true;
    this.attempted.close();
  }

  edit(card) {
    this.card = card;
    const dialog = $("#edit"), form = $("form", dialog), scene = card.kind === "scene";
    $("#edit-title").textContent = `Frame ${card.number}`;
    for (const element of $$(".scene", form)) show(element, scene);
    for (const name of FIELDS) form.elements[name].value = card[name];
    form.elements.comment.value = "";
    form.elements.status.value = card.status;
    $("#edit-comments").replaceChildren(...card.comments.map((item) => h("li", {}, item.text, h("span", { class: "note" }, [item.by, item.at && new Date(item.at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })].filter(Boolean).map((told) => ` · ${told}`).join("")))));
    form.elements.must_show.value = card.must_show.join("\n");
    form.elements.duration.value = card.duration ?? "";
    form.elements.seed.value = card.seed ?? "";
    $("#edit-cast").replaceChildren(...this.desk.page().board.cast.map((member) => h("label", {},
      h("input", { type: "checkbox", name: "who", value: member.name, checked: card.characters.includes(member.name) }), ` ${member.name}`)));
    const shown = $("#edit-picture");
    show(shown, Boolean(card.sha256));
    if (card.sha256) { shown.src = picture(card.sha256, false); shown.alt = `Frame ${card.number}: ${card.caption || card.prompt}`; }
    show($("#edit-part"), Boolean(card.sha256) && !card.locked && this.desk.page().masks);
    show($("#edit-drawing"), card.drawing && !card.locked);
    for (const name of ["#edit-pen", "#edit-own"]) show($(name), Boolean(card.sha256) && !card.locked);
    $("#edit-told").textContent = card.locked ? "This frame is locked: unlock it to change its picture." : "";
    $("#edit-story").textContent = card.story ? `The story: ${card.story}` : "";
    this.holdFrame(form, "frame", card, () => this.edit(card));
    openDialog(dialog);
  }

  // What was typed into a form of this board before, and neither saved nor taken back, stands in it again.
  hold(form, what, renew) { holdForm(form, `${this.desk.page().board.name} ${what}`, renew); }

  // What is typed of a frame goes with its picture wherever the frame is moved, and with its number where it got another.
  holdFrame(form, what, card, renew) {
    const { name, cards } = this.desk.page().board, begin = `${name} ${what} `, alike = cards.filter((one) => one.sha256 === card.sha256);
    const key = `${begin}${card.sha256}${alike.length > 1 ? ` ${alike.findIndex((one) => one.number === card.number)}` : ""}`;
    form.elements.number.value = card.number;
    const left = typedKeys().find((one) => one.startsWith(begin) && typedAt(one).number === String(card.number) && !cards.some((other) => one.startsWith(`${begin}${other.sha256}`)));
    if (left && !typedAt(key)) { keepTyped(key, typedAt(left)); keepTyped(left, null); }
    const typed = typedAt(key), number = String(card.number);
    if (typed && typed.number !== number) keepTyped(key, { ...typed, number });
    holdForm(form, key, renew);
  }

  // The number of the frame that has this card's picture now: it may have been moved meanwhile, in another tab.
  numberOf(card) {
    const alike = this.desk.page().board.cards.filter((one) => one.sha256 === card.sha256), there = alike.find((one) => one.number === card.number) || alike[0];
    if (!there) throw new Error("The picture of this frame was changed meanwhile. What you did is kept: close this, and open it again.");
    return there.number;
  }

  changes() {
    const form = $("#edit form"), card = this.card, edit = { op: "change", frame: card.number };
    const put = (name, value, before) => { if (!same(value, before)) edit[name] = value; };
    for (const name of card.kind === "scene" ? FIELDS : BESIDE) put(name, form.elements[name].value.trim(), card[name]);
    if (form.elements.duration.value) put("duration", Number(form.elements.duration.value), card.duration);
    if (card.kind === "scene") {
      put("must_show", lines(form.elements.must_show.value), card.must_show);
      put("characters", $$("[name=who]:checked", form).map((box) => box.value), card.characters);
    }
    if (form.elements.seed.value) put("seed", Number(form.elements.seed.value), card.seed);
    return edit;
  }

  // What is typed in the editor, as edits: what the frame shows and says, and what is said of it.
  edits() {
    const edit = this.changes(), { comment, status } = $("#edit form").elements, talk = { op: "talk", frame: this.card.number };
    if (comment.value.trim()) talk.comments = [{ text: comment.value.trim(), at: new Date().toISOString().replace(/\.\d+Z/, "Z") }];
    if (status.value !== this.card.status) talk.status = status.value;
    return [edit, talk].filter((item) => Object.keys(item).length > 2);
  }

  save() {
    const edits = this.edits();
    if (!edits.length) { forgetForm($("#edit form")); $("#edit").close(); return; }
    const theirs = this.clash(edits.find((edit) => edit.op === "change") || {});
    if (theirs) { problem($("#edit"), theirs); return; }
    this.attempt($("#edit"), () => this.desk.change(edits));
  }

  duplicate() {
    this.attempt($("#edit"), () => this.desk.change([...this.edits(), { op: "duplicate", frame: this.card.number }]));
  }

  // A field that this form and another tab have both changed is not overwritten unasked: what it says now is told once.
  clash(edit) {
    const now = this.desk.page().board.cards.find((card) => card.number === this.card.number);
    const names = now ? Object.keys(edit).filter((name) => name in this.card && !same(now[name], this.card[name]) && !same(now[name], edit[name])) : [];
    if (!names.length) return "";
    this.card = { ...this.card, ...Object.fromEntries(names.map((name) => [name, now[name]])) };
    return `Changed meanwhile, in another tab: ${names.map((name) => `${name.replaceAll("_", " ")} is “${[now[name]].flat().join(", ")}” now`).join("; ")}. Save again to put yours in its place.`;
  }

  // One frame more: a new one behind frame `after`, for a sentence of the story where it is given as `text`, or two of the
  // one in the editor (`split`). What was typed in the editor meanwhile is one step with it, so that nothing of it is lost.
  more(split, after, text = "") {
    const form = $("#more form"), cards = this.desk.page().board.cards;
    this.split = split;
    this.typed = $("#edit").open ? this.edits() : [];
    $("#more-title").textContent = split ? `Frame ${split.number} in two` : "A new frame";
    for (const label of $$("[data-more]", form)) show(label, label.dataset.more === (split ? "split" : "add"));
    form.elements.at.replaceChildren(...[0, ...cards.map((card) => card.number)].map((number) => h("option", { value: number + 1, selected: number === after },
      number ? `after frame ${number}` : "at the beginning")));
    const [first, rest] = split ? halves($("#edit [name=prompt]").value.trim()) : ["", text];
    form.elements.caption.value = text;
    form.elements.first.value = first;
    form.elements.prompt.value = rest;
    $("button[type=submit]", form).textContent = split ? "Split it" : "Add it";
    this.hold(form, split ? `two of frame ${split.number}` : `new frame ${text}`, () => this.more(split, after, text));
    openDialog($("#more"));
    form.elements.prompt.focus();
  }

  addOrSplit() {
    const { first, prompt, caption, at } = $("#more form").elements, split = this.split, typed = this.typed;
    const words = { first: first.value.trim(), prompt: prompt.value.trim() };
    if (split) for (const edit of typed) delete edit.prompt;
    const before = typed.filter((edit) => Object.keys(edit).length > 2);
    const edit = split ? { op: "split", frame: split.number, second: words.prompt } : { op: "add", at: Number(at.value), prompt: words.prompt };
    if (!split && caption.value.trim()) edit.caption = caption.value.trim();
    if (split && words.first && words.first !== split.prompt) edit.first = words.first;
    this.attempt($("#more"), async () => {
      await this.desk.change([...before, edit]);
      if (before.length) forgetForm($("#edit form"));
      $("#edit").close();
    });
  }

  // A part of a frame: the mask is sent as a picture and named by the edit, which the renderer follows.
  part(card) {
    const form = $("#inpaint form"), shown = $("#inpaint-picture");
    this.card = card;
    $("#inpaint-title").textContent = `A part of frame ${card.number}`;
    form.elements.prompt.value = card.prompt;
    form.elements.seed.value = ((card.seed ?? 0) + 1) % 2 ** 32;
    shown.alt = `Frame ${card.number}: ${card.caption || card.prompt}`;
    shown.onload = () => this.mask.reset(shown.naturalWidth, shown.naturalHeight);
    shown.src = picture(card.sha256, false);
    this.holdFrame(form, "part of frame", card, () => this.part(card));
    openDialog($("#inpaint"));
  }

  inpaint() {
    const { prompt, seed } = $("#inpaint form").elements, card = this.card;
    this.attempt($("#inpaint"), async () => {
      const edit = { op: "take", frame: card.number, seed: Number(seed.value), mask: await sendPicture(await this.mask.picture()) };
      if (prompt.value.trim() && prompt.value.trim() !== card.prompt) edit.prompt = prompt.value.trim();
      await this.desk.change([edit]);
    });
  }

  takes(card) {
    this.taken = card.number;
    $("#takes-title").textContent = `Takes of frame ${card.number}`;
    $("#takes [name=prompt]").value = card.prompt;
    this.holdFrame($("#takes form"), "takes of frame", card, () => this.takes(card));
    $("#takes-list").replaceChildren(this.take({ sha256: card.sha256, seed: card.seed, prompt: card.prompt, chosen: true }, 0));
    openDialog($("#takes"));
  }

  take(item, at) {
    return h("li", { class: item.chosen ? "proposed" : "" },
      image(item.sha256, item.chosen ? "The take on the board" : `Take ${at}`),
      h("p", { class: "note" }, item.chosen ? "On the board" : `Take ${at}`, `, seed ${item.seed}`),
      item.chosen ? null : h("button", { type: "button", onclick: () => this.attempt($("#takes"), () => this.desk.change(
        [{ op: "take", frame: this.taken, seed: item.seed, prompt: item.prompt }])) }, `Choose take ${at}`));
  }

  drawTakes() {
    const card = this.desk.page().board.cards[this.taken - 1];
    const prompt = $("#takes [name=prompt]").value.trim();
    this.attempt($("#takes"), async () => {
      await this.desk.takes(this.taken, prompt && prompt !== card.prompt ? prompt : null);
      $("#takes-list").replaceChildren(...this.desk.page().takes.map((item, at) => this.take(item, at)));
    }, { close: false });
  }

  cast() {
    const members = this.desk.page().board.cast;
    $("#cast-list").replaceChildren(...(members.length ? members.map((member) => this.member(member))
      : [h("li", { class: "note" }, "Nobody was read in this story.")]));
    for (const [at, member] of members.entries()) this.hold($$("#cast-list .member")[at], `cast ${member.name}`, () => this.cast());
    show($("#cast-sheet"), Boolean(this.desk.page().sheet));
    if (this.desk.page().sheet) $("#cast-sheet img").src = about(`drawings/cast?v=${this.desk.page().version}`);
    const form = $("#cast-new");
    form.reset();
    this.hold(form, "cast, a new character", () => this.cast());
    openDialog($("#cast"));
  }

  // One character's sheet. Its picture is sent at once and kept; the board changes when the sheet is saved.
  member(member) {
    const field = (name, value, list) => h("input", { name, value, maxlength: "200", list, autocomplete: "off" });
    const fields = { new_name: field("new_name", member.name), kind: field("kind", member.kind),
      age: field("age", member.age, "ages"), color: field("color", member.color, "colors"), ...Object.fromEntries(LOOKS.map((name) => [name, field(name, member[name])])),
      appearance: h("textarea", { name: "appearance", rows: "2", maxlength: "4000" }) };
    fields.appearance.value = member.appearance;
    const before = { new_name: member.name, kind: member.kind, age: member.age, color: member.color, appearance: member.appearance, ...Object.fromEntries(LOOKS.map((name) => [name, member[name]])) };
    let reference = member.reference;
    const shown = h("div", { class: "reference" }), file = h("input", { type: "file", name: "picture", accept: $("#own [name=file]").accept });
    const draw = () => shown.replaceChildren(
      ...(reference ? [image(reference, `The picture of ${member.name}`),
        h("button", { type: "button", "aria-label": `Take it away, the picture of ${member.name}`, onclick: () => { reference = ""; draw(); } }, "Take it away")]
        : [this.portrait(member)]));
    file.addEventListener("change", () => this.attempt($("#cast"), async () => {
      const [picked] = file.files;
      if (!picked) return;
      file.value = "";
      reference = await sendPicture(picked);
      draw();
    }, { close: false }));
    const save = () => {
      const edit = { op: "character", name: member.name };
      for (const [name, element] of Object.entries(fields)) if (element.value.trim() !== before[name]) edit[name] = element.value.trim();
      if (reference !== member.reference) edit.reference = reference;
      if (Object.keys(edit).length === 2) { forgetForm(made); $("#cast").close(); return; }
      this.attempt($("#cast"), async () => { await this.desk.change([edit]); forgetForm(made); });
    };
    draw();
    const made = h("li", { class: "member", "data-name": member.name }, h("h3", {}, member.name),
      h("div", { class: "split" },
        h("div", {}, shown, h("label", { class: "file" }, `A picture of ${member.name}`, file)),
        h("div", { class: "fields-form" },
          h("label", {}, "Name", fields.new_name), h("label", {}, "What it is", fields.kind),
          h("label", {}, "Age", fields.age), h("label", {}, "Colour (coat or clothes)", fields.color),
          ...LOOKS.map((name) => h("label", {}, name[0].toUpperCase() + name.slice(1), fields[name])),
          h("label", { class: "wide" }, "Looks like", fields.appearance))),
      h("div", { class: "row" }, h("button", { type: "button", class: "save", onclick: save, "aria-label": `Save ${member.name}` }, "Save"),
        ...this.together(member),
        h("button", { type: "button", class: "danger", "data-cast": "remove", onclick: () => this.recast({ op: "drop_character", name: member.name }) }, "Take off the cast", h("span", { class: "sr" }, `: ${member.name}`))));
    return made;
  }

  recast(edit) { return this.attempt($("#cast"), () => this.desk.change([edit])); }

  // As the renderer draws it now, where that is free and quick.
  portrait(member) {
    const place = h("div", {}), none = () => place.replaceChildren(h("p", { class: "note" }, this.desk.page().sheet ? "On the sheet above" : "No picture"));
    place.append(h("img", { src: about(`api/portrait?name=${encodeURIComponent(member.name)}&v=${this.desk.page().version}`), alt: `${member.name}, as it is drawn`, onerror: none }), h("p", { class: "note" }, "As it is drawn"));
    return place;
  }

  // Two sheets of one character: all its frames go to the other one.
  together(member) {
    const others = this.desk.page().board.cast.filter((other) => other.name !== member.name);
    if (!others.length) return [];
    const into = h("select", {}, others.map((other) => h("option", { value: other.name }, other.name)));
    return [h("label", { class: "into" }, `${member.name} is also`, into),
      h("button", { type: "button", "data-cast": "merge", onclick: () => this.recast({ op: "merge_characters", name: member.name, into: into.value }) }, "Make them one", h("span", { class: "sr" }, `: ${member.name}`))];
  }

  addCharacter() {
    const form = $("#cast-new"), edit = { op: "new_character" };
    for (const name of ["name", "kind", "age", "color", "appearance"]) if (form.elements[name].value.trim()) edit[name] = form.elements[name].value.trim();
    this.attempt($("#cast"), async () => { await this.desk.change([edit]); forgetForm(form); });
  }

  async history() {
    const versions = await this.desk.versions();
    $("#history-list").replaceChildren(...versions.map((item) => h("li", { class: `version${item.current ? " current" : ""}` },
      h("p", {}, h("b", {}, item.name), ` ${item.says}`, item.current ? h("span", { class: "chip" }, "now") : null),
      h("ol", { class: "thumbs" }, item.frames.map((frame) => h("li", {}, image(frame.sha256, `Version ${item.name}, frame ${frame.index}`)))),
      item.current ? null : h("button", { type: "button", onclick: () => this.attempt($("#history"), () => this.desk.go(item.name)) }, `Go to ${item.name}`))));
    openDialog($("#history"));
  }

  export() {
    this.exportFields();
    openDialog($("#export"));
  }

  exportFields() {
    const to = $("#export [name=to]").value, layout = $("#export [name=layout]").value;
    for (const label of $$("#export [data-for]")) {
      const laid = to !== "pdf" || !label.dataset.layout || label.dataset.layout.split(" ").includes(layout);
      show(label, label.dataset.for.split(" ").includes(to) && laid);
    }
  }

  download() {
    const form = $("#export form"), options = {};
    for (const label of $$("#export [data-for]").filter((item) => !item.hidden)) {
      const field = $("select, input", label);
      if (field.type !== "file" && field.value !== "") options[field.name] = field.type === "number" ? Number(field.value) : field.value;
    }
    const { turn, still } = options, logo = form.elements.logo.closest("label").hidden ? null : form.elements.logo.files[0];
    delete options.turn;
    if (turn) options[turn] = true;
    if ("still" in options) options.still = Boolean(still);
    this.attempt($("#export"), async () => {
      if (logo?.size > 6000000) throw new Error("This logo is larger than 6 MB: scale it down.");
      const response = await post("export", { to: form.elements.to.value, options, ...(logo ? { logo: await base64(logo) } : {}) });
      const told = response.headers.get("content-disposition"), whole = /filename\*=UTF-8''([^;]+)/.exec(told)?.[1];
      const name = whole ? decodeURIComponent(whole) : /filename="([^"]+)"/.exec(told)?.[1] || "board";
      const link = h("a", { href: URL.createObjectURL(await response.blob()), download: name });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    });
  }
}
