// The first page: a new story, what was read of it, a board that is brought along, and the list of boards.
import { $, fill, get, h, here, image, keepFocus, leftOut, post, readFiles, readText, say, show } from "./desk_parts.js";
import { Choices } from "./desk_choices.js";
import { plannedList, toldList } from "./desk_board.js";
import { agreed } from "./desk_forms.js";
import { address, go } from "./desk_route.js";
import { fillForm, flushTyped, keepTyped, loadTyped, typedAt, valuesOf } from "./desk_typed.js";

const TYPED = "story";
const WORDS = ["title", "text", "style", "renderer", "judge", "size"];
const costWords = (cost) => (cost.dollars === null ? "What this costs is not known." : `This costs at most about $${cost.dollars.toFixed(2)}.`);
const dated = (iso) => new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

// The form of a new story, as the desk is told it.
export function told() {
  const fields = $("#story").elements;
  const words = Object.fromEntries(WORDS.map((name) => [name, fields[name].value]));
  return { ...words, panels: Number(fields.panels.value) || null };
}

export class Home {
  // tried(act): does it, and tells what fails; read(story): has it read, and gives what was read.
  constructor(tried, read) {
    this.tried = tried;
    this.draft = null;
    this.renamed = "";
    const form = $("#story");
    this.choices = new Choices(form, () => this.changed());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      tried(async () => {
        say("");
        this.showDraft(null);
        this.showDraft(await read(told()));
        $("#draft-title").focus();
        say(`${this.draft.board.cards.length} panels were read.`);
      });
    });
    const text = form.elements.text;
    text.addEventListener("invalid", () => text.setCustomValidity("Paste a story first: a few sentences are enough."));
    $("button[type=submit]", form).addEventListener("click", () => text.setCustomValidity(""));
    form.addEventListener("input", () => this.changed());
    form.elements.file.addEventListener("change", (event) => tried(async () => {
      const field = event.target, file = field.files[0];
      if (!file) return;
      try {
        const text = await readText(file);
        if (file.size > 200000) throw new Error("This file is longer than a story for one board: at most 200,000 bytes are read.");
        form.elements.text.value = text;
        this.changed();
      } catch (error) {
        field.value = "";
        throw error;
      }
    }));
    $("#draw").addEventListener("click", () => tried(() => this.draw()));
    $("#import").elements.folder.addEventListener("change", (event) => { $("#import").elements.files.required = !event.target.files.length; });
    $("#import").addEventListener("submit", (event) => { event.preventDefault(); tried(() => this.bring()); });
  }

  changed() { this.showDraft(null); keepTyped(TYPED, valuesOf($("#story"))); }

  showDraft(read) {
    this.draft = read;
    show($("#draft"), Boolean(read));
    if (!read) { $("#story").elements.title.placeholder = ""; return; }
    const { board, cost } = read;
    $("#story").elements.title.placeholder = board.title;
    toldList($("#draft-story"), board);
    plannedList($("#draft-panels"), board);
    const cast = board.cast.map((member) => (member.kind && member.kind !== member.name ? `${member.name} (${member.kind})` : member.name));
    $("#draft-cast").textContent = cast.length ? `Who is in it: ${cast.join(", ")}.` : "Nobody was read in this story.";
    this.showUnfit(read.unfit);
    $("#draft-cost").replaceChildren(
      h("p", {}, cost.by_hand && cost.dollars === 0 ? "Nothing is paid for here: you carry every prompt to a chat window, and its reply back."
        : cost.dollars === 0 ? "Drawing it is free: everything runs on this machine."
        : cost.dollars === null ? "What it costs is not known." : `Drawing it costs at most about $${cost.dollars.toFixed(2)}.`),
      h("details", {}, h("summary", {}, "What would be drawn and asked"), h("ul", {}, cost.lines.map((line) => h("li", {}, line)))));
  }

  // A judge that cannot read the pictures: nothing is drawn before another is chosen.
  showUnfit(unfit) {
    const place = $("#draft-unfit");
    show(place, Boolean(unfit));
    $("#draw").disabled = Boolean(unfit);
    $("#draw").title = unfit ? unfit.said : "";
    if (!unfit) return;
    const take = (name, words) => h("button", { type: "button", "data-judge": name, onclick: () => {
      const field = $("#story").elements.judge;
      if (![...field.options].some((option) => option.value === name)) field.add(new Option(name, name));
      field.value = name;
      this.changed();
      $("#story").requestSubmit();
    } }, words);
    const price = unfit.dollars === null ? "price not known" : unfit.dollars === 0 ? "free" : `about $${unfit.dollars.toFixed(2)} at most`;
    place.replaceChildren(h("p", {}, `${unfit.said} Choose who looks at them:`), h("div", { class: "row" },
      unfit.proposed === "none" ? null : take(unfit.proposed, `${unfit.proposed} (${price})`), take("none", "Nobody (free, no bridge)")));
  }

  // The story leaves the form when its board begins, and comes back where that fails.
  async draw() {
    const { cost, told: story } = this.draft;
    const pays = await agreed({ free: cost.dollars === 0, picture: null, words: costWords(cost) });
    await flushTyped();
    const { run } = await (await post("draw", { story, agreed: pays }, "")).json();
    this.clear();
    say("");
    go({ run });
  }

  clear() { $("#story").reset(); this.showDraft(null); this.choices.show(); }

  // A board that is drawn already: its files are sent as they are; where judging it costs something, nothing begins before
  // a yes.
  async bring() {
    const { files, folder, title, text, pages, order } = $("#import").elements;
    const given = [...files.files, ...folder.files], others = leftOut(given);
    const board = { files: await readFiles(given), title: title.value, text: text.value, pages: pages.value, order: order.value };
    say("Reading the board.");
    let begun = await (await post("import", { board }, "")).json();
    if (!begun.run) begun = await (await post("import", { board, agreed: await agreed({ free: false, words: costWords(begun.cost) }) }, "")).json();
    $("#import").reset();
    say(others);
    go({ run: begun.run });
  }

  // What was typed stands in the form, whoever typed it, and below it what was read of it.
  async show(page) {
    const waiting = await loadTyped(), typed = typedAt(TYPED), form = $("#story");
    await this.choices.load();
    if (typed && JSON.stringify(typed) !== JSON.stringify(valuesOf(form))) { fillForm(form, typed); this.choices.show(); this.showDraft(null); }
    const read = page.draft;
    if (read && !typed && !told().text) fillForm(form, Object.fromEntries(["panels", ...WORDS].map((name) => [name, String(read.told[name] ?? "")])));
    const now = JSON.stringify(told());
    if (read && !this.draft && now === JSON.stringify(Object.fromEntries(Object.keys(told()).map((name) => [name, read.told[name]])))) this.showDraft(read);
    this.showWaiting(waiting);
    await this.showBoards();
  }

  showWaiting(waiting) {
    const rows = Object.entries(waiting);
    show($("#unfinished"), rows.length > 0);
    $("#unfinished ul").replaceChildren(...rows.map(([key, title]) => h("li", {}, title, " ",
      h("button", { type: "button", onclick: () => this.tried(async () => {
        await flushTyped();
        await post("take-up", { key }, "");
        this.clear();
        await loadTyped();
      }) }, "Put it into the form", h("span", { class: "sr" }, `: ${title}`)))));
  }

  async showBoards() {
    const [runs, removed] = await Promise.all([get("api/runs", { run: "" }), get("api/removed", { run: "" })]);
    show($("#runs"), runs.length > 0 || removed.length > 0);
    show($("#runs-none"), runs.length === 0);
    keepFocus(() => fill($("#runs-list"), runs, (run) => JSON.stringify([run, run.name === this.renamed]), (run) => this.board(run)));
    if (this.renamed) $("#runs-list [name=title]")?.focus();
    show($("#removed"), removed.length > 0);
    $("#removed-list").replaceChildren(...removed.map((item) => h("li", {}, h("span", {}, item.title), h("span", { class: "note" }, `taken away ${dated(item.removed)}`),
      h("span", { class: "row" },
        h("button", { type: "button", onclick: () => this.tried(() => this.putBack(item.key, item.title)) }, "Put back", h("span", { class: "sr" }, ` ${item.title}`)),
        h("button", { type: "button", class: "danger", onclick: (event) => this.tried(() => this.deleteForGood(event.currentTarget, item)) }, "Delete for good …", h("span", { class: "sr" }, ` ${item.title}`))))));
  }

  board(run) {
    const to = address({ run: run.name });
    const facts = [dated(run.changed), run.frames ? `${run.frames} frames` : "", run.status === "finished" ? "" : run.status].filter(Boolean);
    const button = (words, act) => h("button", { type: "button", "data-focus": `${words} ${run.name}`, onclick: () => this.tried(act) }, words, h("span", { class: "sr" }, ` ${run.title}`));
    return h("li", { "data-run": run.name },
      h("a", { class: "thumb", href: to, tabindex: "-1", "aria-hidden": "true" }, run.picture ? image(run.picture, "", run.name) : h("span", { class: "blank" })),
      run.name === this.renamed ? this.renaming(run) : h("div", {}, h("a", { class: "link", href: to }, run.title), h("p", { class: "note" }, facts.join(" · ")),
        h("div", { class: "row" }, button("Rename", () => this.rename(run.name)), button("Remove", () => this.remove(run)))));
  }

  async rename(name) { this.renamed = name; await this.showBoards(); }

  renaming(run) {
    const field = h("input", { name: "title", maxlength: "200", autocomplete: "off", value: run.title });
    const leave = async () => { await this.rename(""); $(`#runs-list li[data-run="${CSS.escape(run.name)}"] button`)?.focus(); };
    return h("form", { class: "form", onsubmit: (event) => {
      event.preventDefault();
      this.tried(async () => { await post("rename", { title: field.value }, run.name); await leave(); say("It has its new title."); });
    }, onkeydown: (event) => { if (event.key === "Escape") this.tried(leave); } },
    h("label", {}, `New title of ${run.title}`, field),
    h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Save"), h("button", { type: "button", onclick: () => this.tried(leave) }, "Leave it")));
  }

  async remove(run) {
    const { key } = await (await post("remove", {}, run.name)).json();
    await this.showBoards();
    say(`${run.title} was taken away. `);
    const undo = h("button", { type: "button", id: "undo-remove", onclick: () => this.tried(() => this.putBack(key, run.title)) }, "Undo");
    $("#status").append(undo);
    undo.focus();
  }

  async putBack(key, title) {
    await post("restore", { key }, "");
    await this.showBoards();
    say(`${title} is back.`);
  }

  async deleteForGood(button, item) {
    if (button.dataset.sure) { await post("delete", { key: item.key }, ""); await this.showBoards(); say(`${item.title} is deleted.`); return; }
    button.dataset.sure = "yes";
    button.textContent = "Yes, delete all its pictures";
  }
}

// What is under way on other boards, each with the way there.
export function showOthers(working) {
  const others = working.filter((item) => item.run !== here.run);
  show($("#others"), others.length > 0);
  const key = JSON.stringify(others);
  if ($("#others").dataset.shown === key) return;
  $("#others").dataset.shown = key;
  $("#others").replaceChildren(...others.map((item) => h("li", {}, h("a", { href: address({ run: item.run }) }, item.name),
    h("span", { class: "note" }, item.asks ? " waits for your choice" : item.waits ? ` waits for its turn, behind “${item.waits}”` : " is under way"))));
}
