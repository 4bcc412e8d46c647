// The desk: follows the work that is under way, shows the run that lies open, and does what a person asks for.
import { $, alarm, get, h, leftOut, post, problem, readFiles, Refused, say, show } from "./desk_parts.js";
import { makeDraggable, plannedList, showBoard, showDrawn, showReview, toldList } from "./desk_board.js";
import { agreed, Forms } from "./desk_forms.js";

let page = { board: null, price: { free: true } };
let progress = { ended: -1, running: false };
let draft = null;
let redrawn = null;
const waiting = [];

// Every change names the version of the board that this tab has seen, so that no tab undoes what another one did.
async function work(name, body) {
  const before = progress.ended;
  await post(name, body);
  const failed = await new Promise((resolve) => { waiting.push({ before, resolve }); });
  if (failed) throw new Refused(failed, false);
}

async function changing(name, body) {
  const [edit, ...others] = body.edits || [];
  redrawn = !others.length && ["change", "take"].includes(edit?.op) ? edit.frame : null;
  try {
    await work(name, { ...body, base: page.version, agreed: await agreed(page.price) });
    say((page.remarks || []).join(" "));
  } catch (error) {
    if (error.stale) await refresh();
    throw error;
  } finally {
    redrawn = null;
  }
}

// What is typed into the story's form outlives a reload and the browser's back button.
const TYPED = `katha-desk ${location.pathname}`;
function keepTyped() {
  try { sessionStorage.setItem(TYPED, JSON.stringify(told())); } catch { /* a browser that keeps nothing loses it on a reload */ }
}
function fillStory(story) {
  const fields = $("#story").elements;
  for (const name of ["title", "text", "panels", "style"]) fields[name].value = story?.[name] ?? "";
}
function showDraft(read) {
  draft = read && { story: read.told, read };
  show($("#draft"), Boolean(draft));
  if (!draft) return;
  const { board, cost } = read;
  toldList($("#draft-story"), board);
  plannedList($("#draft-panels"), board);
  const cast = board.cast.map((member) => (member.kind && member.kind !== member.name ? `${member.name} (${member.kind})` : member.name));
  $("#draft-cast").textContent = cast.length ? `Who is in it: ${cast.join(", ")}.` : "Nobody was read in this story.";
  $("#draft-cost").replaceChildren(
    h("p", {}, cost.dollars === 0 ? "Drawing it is free: everything runs on this machine."
      : cost.dollars === null ? "What it costs is not known." : `Drawing it costs at most about $${cost.dollars.toFixed(2)}.`),
    h("details", {}, h("summary", {}, "What would be drawn and asked"), h("ul", {}, cost.lines.map((line) => h("li", {}, line)))));
}

const desk = {
  page: () => page,
  change: (edits) => changing("edit", { edits }),
  takes: (frame, prompt) => changing("takes", { frame, prompt }),
  bridge: (pair, prompt) => changing("bridge", { pair, prompt }),
  versions: () => get("api/versions"),
  keepDrawing: async (svg, frame) => (await (await post("drawing", { svg, frame })).json()).sha256,
  async go(version) { await work("version", { version, base: page.version }); },
  async step(where) { await work("version", { where, base: page.version }); },
};
const forms = new Forms(desk);

async function tried(act) {
  alarm("");
  try { await act(); } catch (error) { alarm(error.message); await refresh(); }
}

const acts = {
  edit: (card) => forms.edit(card),
  tell: (text, after) => forms.more(null, after, text),
  takes: (card) => forms.takes(card),
  lock: (card) => tried(() => desk.change([{ op: "lock", frame: card.number, locked: !card.locked }])),
  remove: (card) => tried(() => desk.change([{ op: "remove", frame: card.number }])),
  bridge: (pair) => tried(() => desk.bridge(pair, null)),
  insert: (item) => tried(() => desk.change([{ op: "bridge", pair: item.pair, seed: item.seed, prompt: item.prompt }])),
};

makeDraggable($("#cards"), (from, to) => tried(async () => {
  await desk.change([{ op: "move", frame: from, to }]);
  $(`.card[data-number="${to}"] .handle`)?.focus();
  say(`Frame ${from} is number ${to} now.`);
}), say);

const doing = {
  add: () => forms.more(null, page.board.cards.length),
  close: () => tried(async () => { await post("close"); say(""); }),
  back: () => tried(() => desk.step("back")),
  forth: () => tried(() => desk.step("forth")),
  history: () => tried(() => forms.history()),
  cast: () => forms.cast(),
  export: () => forms.export(),
  stop: () => tried(() => post("stop")),
  "go-on": () => tried(async () => {
    const words = page.price.whole === null ? "What this costs is not known." : `Going on costs at most about $${page.price.whole.toFixed(2)}; what is kept is not paid for again.`;
    await post("go-on", { agreed: await agreed({ ...page.price, words }) });
  }),
};
document.addEventListener("click", (event) => {
  const name = event.target.closest("[data-do]")?.dataset.do;
  if (name) doing[name]();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog[open]");
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || !page.version) return;
  event.preventDefault();
  if (event.shiftKey ? page.forth : page.back) doing[event.shiftKey ? "forth" : "back"]();
});

// A new story: it is read first, and what it costs is said before anything is drawn.
function told() {
  const fields = $("#story").elements;
  return { title: fields.title.value, text: fields.text.value, panels: Number(fields.panels.value) || null, style: fields.style.value };
}

$("#story").addEventListener("submit", (event) => {
  event.preventDefault();
  tried(async () => {
    say("");
    showDraft(null);
    await work("read", told());
    showDraft(page.draft);
    $("#draft-title").focus();
    say(`${draft.read.board.cards.length} panels were read.`);
  });
});
$("#story").addEventListener("input", () => { showDraft(null); keepTyped(); });
$("#story").elements.file.addEventListener("change", (event) => tried(async () => {
  const file = event.target.files[0];
  if (!file) return;
  if (file.size > 200000) throw new Error("This file is longer than a story for one board: at most 200,000 bytes are read.");
  $("#story").elements.text.value = await file.text();
  showDraft(null);
  keepTyped();
}));
const costWords = (cost) => (cost.dollars === null ? "What this costs is not known." : `This costs at most about $${cost.dollars.toFixed(2)}.`);
$("#draw").addEventListener("click", () => tried(async () => {
  const { cost } = draft.read;
  const pays = await agreed({ free: cost.dollars === 0, picture: null, words: costWords(cost) });
  await post("draw", { story: draft.story, agreed: pays });
  $("#story").reset();
  keepTyped();
  showDraft(null);
  say("");
}));

// A board that is drawn already: its files are sent as they are; where judging it costs something, nothing begins before
// a yes.
$("#import").elements.folder.addEventListener("change", (event) => { $("#import").elements.files.required = !event.target.files.length; });
$("#import").addEventListener("submit", (event) => {
  event.preventDefault();
  tried(async () => {
    const { files, folder, title, text, pages } = $("#import").elements;
    const given = [...files.files, ...folder.files], others = leftOut(given);
    const board = { files: await readFiles(given), title: title.value, text: text.value, pages: pages.value };
    say("Reading the board.");
    const cost = await (await post("import", { board })).json();
    if (cost.dollars !== 0) await post("import", { board, agreed: await agreed({ free: false, words: costWords(cost) }) });
    $("#import").reset();
    say(others);
  });
});

async function showHome() {
  const runs = await get("api/runs");
  show($("#runs"), runs.length > 0);
  $("#runs-list").replaceChildren(...runs.map((run) => h("li", {},
    h("button", { type: "button", class: "link", onclick: () => tried(async () => { await post("open", { name: run.name }); say(""); }) }, run.title),
    h("span", { class: "chip" }, run.status))));
}

function verdict(board) {
  const numbers = board.numbers;
  if (!numbers || numbers.image === null) return board.finished ? "Nobody could judge this board." : "";
  const change = numbers.before === null ? 0 : numbers.image - numbers.before;
  const moved = Math.abs(change) < 0.05 ? "" : `, ${change > 0 ? "up" : "down"} from ${Math.round(numbers.before)}% before`;
  return `From the pictures alone a viewer understands ${Math.round(numbers.image)}% of what the story tells${moved}.`;
}

async function refresh() {
  page = await get("api/board");
  if (!page.board && page.remarks?.length) alarm(page.remarks.join(" "));
  await showPage();
}

async function showPage() {
  const board = page.board, ready = Boolean(page.version) && !progress.running;
  show($("#home"), !board && !progress.running);
  show($("#open"), Boolean(board && board.cards.length));
  show($("#tools"), Boolean(board));
  show($("#stopped"), Boolean(board && !board.finished && !progress.running));
  $("#title").textContent = board ? board.title : "A story becomes a storyboard";
  document.title = board ? `${board.title} - katha desk` : "katha desk";
  $("#verdict").textContent = board ? verdict(board) : "Paste a story. It is read, drawn, and looked at by a judge that sees the pictures alone.";
  for (const [name, able] of [["back", page.back], ["forth", page.forth], ["history", true], ["cast", true], ["export", true]]) {
    $(`#tools [data-do=${name}]`).disabled = !ready || !able;
  }
  $("#tools [data-do=close]").disabled = progress.running;
  $("#tools a").hidden = !ready;
  if (board) showBoard(page, acts, ready); else if (!progress.running) await showHome();
  showReview(page.review, board, (choice) => tried(async () => { await post("choose", choice); }));
}

function showProgress() {
  show($("#progress"), progress.running && !progress.asks);
  $("#progress-title").textContent = progress.stopping ? `${progress.name}: stopping after this step` : progress.name;
  $("#stages").replaceChildren(...progress.stages.map((stage) => h("li", { class: stage.finished ? "done" : "" },
    h("span", {}, stage.title),
    stage.total ? h("progress", { value: Math.min(stage.done, stage.total), max: stage.total, "aria-label": stage.title }) : h("span", {}, stage.finished ? "✓" : "…"),
    h("span", { class: "note" }, stage.total ? `${stage.done} of ${stage.total}` : "", stage.note ? ` ${stage.note}` : ""))));
}

// `paste`: a prompt that a person carries to a chat window. What is typed stays while the same prompt waits.
let exchanged = "";
function showExchange(asked) {
  const form = $("#exchange"), key = asked ? `${asked.number} ${asked.problem}` : "";
  show(form, Boolean(asked));
  if (!asked || key === exchanged) { exchanged = key; return; }
  exchanged = key;
  form.elements.prompt.value = asked.text;
  form.elements.reply.value = "";
  $("#exchange-title").textContent = `Exchange ${Number(asked.number)}: ask your assistant`;
  $("#exchange-note").textContent = asked.problem ? "Give this to the same chat." : `Copy the prompt into a new chat${asked.pictures.length ? ", attach the pictures" : ""}, and bring the whole reply back.`;
  $("#exchange-copy").textContent = "Copy the prompt";
  problem(form, asked.problem ? `That reply cannot be used: ${asked.problem}` : "");
  $("#exchange-pictures").replaceChildren(...asked.pictures.map((name, at) => h("li", {},
    h("a", { href: `paste/${name}`, download: name }, h("img", { src: `paste/${name}`, alt: `Picture ${at + 1} of the prompt` }), h("span", {}, `Save picture ${at + 1}`)))));
  $("#exchange-title").focus({ preventScroll: true });
}
$("#exchange-copy").addEventListener("click", () => tried(async () => {
  const field = $("#exchange").elements.prompt;
  field.select();
  try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
  $("#exchange-copy").textContent = "Copied";
}));
$("#exchange").addEventListener("submit", (event) => {
  event.preventDefault();
  tried(async () => { await post("reply", { number: progress.exchange.number, text: $("#exchange").elements.reply.value }); });
});

async function follow() {
  let ticks = "", seen = "";
  for (;;) {
    try {
      progress = await get(`api/progress?known=${ticks}`);
      if (document.body.dataset.ready === "lost") alarm("");
      const planned = progress.stages.some((stage) => stage.stage === "plan" && stage.finished);
      const key = [progress.ended, progress.asks, progress.running, progress.name, planned, progress.running ? "" : progress.ticks].join();
      ticks = progress.ticks;
      showProgress();
      showExchange(progress.running ? progress.exchange : null);
      if (key !== seen) {
        // A board that begins to be changed is the one that is shown: its buttons wait, and nothing is asked for.
        if (progress.running && page.version) { page = { ...page, version: "" }; await showPage(); } else await refresh();
        seen = key;
      }
      if (page.board && !page.board.finished && !page.review) {
        for (const [scene, sha256] of Object.entries(progress.scenes)) showDrawn(scene, sha256);
      }
      if (redrawn && progress.running && progress.drawn.length) {
        showDrawn(redrawn, progress.drawn[0]);
        forms.drawn();
      }
      for (const item of waiting.splice(0)) {
        if (progress.ended > item.before) item.resolve(progress.failed); else waiting.push(item);
      }
      if (progress.failed && !progress.running) say(progress.failed);
      document.body.dataset.ready = progress.running ? "working" : "idle";
    } catch (error) {
      document.body.dataset.ready = "lost";
      alarm(error instanceof Refused ? error.message : "The desk does not answer. Start `katha desk` again and open the address that it prints; nothing is lost.");
      await new Promise((resolve) => setTimeout(resolve, 1500));
    }
  }
}

// After a reload the form holds what was typed, and what was read of it stands below it again.
async function begin() {
  const typed = sessionStorage.getItem(TYPED);
  if (typed) fillStory(JSON.parse(typed));
  try { page = await get("api/board"); } catch { /* `follow` says what is wrong */ }
  const read = page.draft;
  if (read && !typed) fillStory(read.told);
  if (read && JSON.stringify(told()) === JSON.stringify({ title: read.told.title, text: read.told.text, panels: read.told.panels, style: read.told.style })) showDraft(read);
  await follow();
}

begin();
