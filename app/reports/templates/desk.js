// The desk: follows the work that is under way, shows the board that the address names, and does what a person asks for.
import { $, $$, alarm, at, get, Gone, h, here, Left, post, problem, Refused, say, show } from "./desk_parts.js";
import { makeDraggable, showBoard, showDrawn, showFrame, showReview } from "./desk_board.js";
import { agreed, Forms } from "./desk_forms.js";
import { showSpent } from "./desk_choices.js";
import { Home, showOthers } from "./desk_home.js";
import { Several } from "./desk_several.js";
import { go, onMove, route } from "./desk_route.js";
import { loadTyped } from "./desk_typed.js";

const NOTHING = { board: null, price: { free: true } };
let page = NOTHING;
let progress = { ended: -1, running: false, working: [] };
let redrawn = null;
let waiting = [];

// Every change names the version of the board that this tab has seen, so that no tab undoes what another one did.
async function work(name, body) {
  const before = progress.ended;
  await post(name, body);
  const failed = await new Promise((resolve, reject) => { waiting.push({ before, resolve, reject }); });
  if (failed) throw new Refused(failed, false);
}

async function changing(name, body) {
  const [edit, ...others] = body.edits || [];
  redrawn = !others.length && ["change", "take"].includes(edit?.op) ? edit.frame : null;
  try {
    const price = page.price.free ? page.price : await (await post("price", { what: name, edits: body.edits, number: body.number })).json();
    await work(name, { ...body, base: page.version, agreed: await agreed(price) });
    say([page.said, ...(page.remarks || [])].filter(Boolean).join(" "), page.details || []);
  } catch (error) {
    if (error.stale) await refresh();
    throw error;
  } finally {
    redrawn = null;
  }
}

const desk = {
  page: () => page,
  change: (edits) => changing("edit", { edits }),
  takes: (frame, prompt) => changing("takes", { frame, prompt }),
  bridge: (pair, prompt) => changing("bridge", { pair, prompt }),
  moves: () => changing("moves", {}),
  tryMove: (number) => changing("try", { number }),
  versions: () => get("api/versions"),
  keepDrawing: async (svg, frame) => (await (await post("drawing", { svg, frame })).json()).sha256,
  async go(version) { say(""); await work("version", { version, base: page.version }); },
  async step(where) {
    say("");
    await work("version", { where, base: page.version });
    say(where === "back" ? "Undone." : "Done again.");
  },
};
const forms = new Forms(desk);

async function tried(act) {
  alarm("");
  try { await act(); } catch (error) {
    if (error instanceof Left) return;
    alarm(error.message);
    if (!(error instanceof Gone)) await refresh();
  }
}

const home = new Home(tried, async (story) => { await work("read", story); return page.draft; });
const several = new Several(desk, forms, tried);
const over = (dialog) => (card) => go({ run: here.run, frame: card?.number ?? null, dialog });

const acts = {
  edit: over("edit"),
  tell: (text, after) => forms.more(null, after, text),
  takes: over("takes"),
  pen: over("pen"),
  pick: (number, chosen) => several.pick(number, chosen),
  lock: (card) => tried(() => desk.change([{ op: "lock", frame: card.number, locked: !card.locked }])),
  again: (card) => tried(() => desk.change([{ op: "take", frame: card.number, seed: ((card.seed ?? 0) + 1) % 2 ** 32 }])),
  remove: (card) => tried(() => desk.change([{ op: "remove", frame: card.number }])),
  bridge: (pair) => tried(() => desk.bridge(pair, null)),
  insert: (item) => tried(() => desk.change([item.move ? { op: "repair", repair: item.move, seed: item.seed }
    : { op: "bridge", pair: item.pair, seed: item.seed, prompt: item.prompt }])),
  moves: () => tried(() => desk.moves()),
  tryMove: (number) => tried(() => desk.tryMove(number)),
};

makeDraggable($("#cards"), (from, to) => tried(async () => {
  await desk.change([{ op: "move", frame: from, to }]);
  $(`.card[data-number="${to}"] .handle`)?.focus();
}), say);

const doing = {
  add: () => over("add")(),
  back: () => tried(() => desk.step("back")),
  forth: () => tried(() => desk.step("forth")),
  history: () => over("history")(),
  cast: () => over("cast")(),
  export: () => over("export")(),
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
  if (typing || $("dialog[open]") || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || !page.version) return;
  event.preventDefault();
  if (event.shiftKey ? page.forth : page.back) doing[event.shiftKey ? "forth" : "back"]();
});

// What opens over the board at an address, and the dialog that it is.
const OPEN = {
  edit: ["#edit", (card) => forms.edit(card)], takes: ["#takes", (card) => forms.takes(card)], part: ["#inpaint", (card) => forms.part(card)],
  drawing: ["#drawing", (card) => forms.drawing.open(card)], pen: ["#pen", (card) => forms.pen.open(card)], own: ["#own", (card) => forms.own.open(card)],
  several: ["#bulk", (card, frames) => several.open(frames)], copy: ["#copy", (card, frames) => several.openCopy(frames)], cast: ["#cast", () => forms.cast()], history: ["#history", () => forms.history()],
  export: ["#export", () => forms.export()], add: ["#more", () => forms.more(null, page.board.cards.length)],
};
let honoured = "", opened = "", returnTo = "";

// Open what the address names, as soon as the board can be changed, and close what it does not.
function honour() {
  const now = route(), [selector, open] = OPEN[now.dialog] || ["", null], moved = honoured !== location.hash;
  if (moved) for (const dialog of $$("dialog[open]")) if (!dialog.matches(selector || "#agree")) dialog.close();
  if (moved && now.frame) several.reveal(now.frame);
  showFrame(now.frame, moved && !progress.exchange);
  // Whoever works by keyboard goes on where the dialog was opened.
  if (opened && !now.dialog) returnTo = opened;
  opened = now.dialog ? `${now.dialog}${now.frame ?? ""}` : "";
  if (returnTo && page.version && !progress.running) {
    if (document.activeElement === document.body) $(`[data-focus="${returnTo}"]`)?.focus({ preventScroll: true });
    returnTo = "";
  }
  if (!page.version || progress.running) return;
  honoured = location.hash;
  if (!open || !moved || $(selector).open) return;
  const card = page.board.cards.find((item) => item.number === now.frame);
  if (selector && now.frame !== null && !card) { alarm(`There is no frame ${now.frame} on this board.`); go({ run: now.run }, { replace: true }); return; }
  tried(async () => { await open(card, now.frames); });
}

// Leave one board for another, or for the list: what is under way goes on.
let leaving = new AbortController();
onMove(() => {
  const { run } = route();
  if (run === here.run) { honour(); return; }
  here.run = run;
  page = NOTHING;
  redrawn = null;
  progress = { ended: -1, running: false, working: progress.working };
  for (const item of waiting) item.reject(new Left());
  waiting = [];
  alarm("");
  say("");
  document.body.dataset.ready = "moving";
  leaving.abort();
});

async function refresh() {
  const run = here.run;
  try {
    const found = await get("api/board");
    if (run !== here.run) return;
    page = found;
  } catch (error) {
    if (!(error instanceof Refused) || !run) throw error;
    if (run === here.run) leave(error.message);
    return;
  }
  if (run && !page.board) {
    const { failed } = await get("api/progress", { run });  // it may have ended since
    if (run === here.run) leave(failed || (page.remarks || []).join(" "));
    return;
  }
  await showPage();
}

// There is no such board (any more): the list says so, and a story that could not be begun is back in its form.
function leave(words) {
  go({}, { replace: true });
  alarm(words);
}

// Why a board cannot be changed now; nothing where it can.
function busy(board) {
  if (progress.asks) return "The board can be changed when you have chosen: “Leave the board as it is” is enough.";
  if (progress.running) return progress.waits ? `The board can be changed when it has had its turn, behind “${progress.waits}”.` : "The board can be changed when this is done.";
  return board && !board.finished ? "The board can be changed when it is finished: go on with it." : "";
}

async function showPage() {
  const board = page.board, ready = Boolean(page.version) && !progress.running, why = busy(board);
  show($("#home"), !here.run);
  show($("#open"), Boolean(board && board.cards.length));
  show($("#tools"), Boolean(here.run));
  show($("#stopped"), Boolean(board && !board.finished && !progress.running));
  $("#title").textContent = board ? board.title : "A story becomes a storyboard";
  document.title = board ? `${board.title} - katha desk` : "katha desk";
  $("#verdict").textContent = board ? board.checks[0]?.said || "" : here.run ? "" : "Paste a story. It is read and drawn, and you change what you like.";
  for (const [name, able, cannot] of [["back", page.back, "There is nothing to undo."], ["forth", page.forth, "There is nothing to do again."], ["history", true, ""], ["cast", true, ""], ["export", true, ""]]) {
    const button = $(`#tools [data-do=${name}]`), usual = { back: "Ctrl+Z", forth: "Ctrl+Shift+Z" }[name] || "";
    button.disabled = !ready || !able;
    button.title = button.disabled ? (why || cannot) : usual;
  }
  show($("#tools .report"), ready);
  $("#tools .report").href = `report?run=${encodeURIComponent(here.run)}`;
  $("#why").textContent = board ? why : "";
  show($("#why"), Boolean(board && why));
  if (board) { home.choices.load().catch(() => {}); showBoard(page, acts, ready); several.show(page, ready); honour(); } else if (!here.run) await home.show(page);
  showReview(page.review, board, (choice) => tried(async () => { await post("choose", choice); }));
}

function showProgress() {
  show($("#progress"), progress.running && !progress.asks);
  $("#progress-title").textContent = progress.stopping ? `${progress.name}: stopping after this step` : progress.waits ? `${progress.name}: waits for its turn, behind “${progress.waits}”` : progress.name;
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
  forms.asked();
  form.elements.prompt.value = asked.text;
  form.elements.reply.value = "";
  $("#exchange-title").textContent = `Exchange ${Number(asked.number)}: ask your assistant`;
  form.elements.whole.value = asked.whole;
  $("#exchange-whole").open = false;
  show($("#exchange-whole"), Boolean(asked.problem));
  $("#exchange-note").textContent = asked.problem ? "Give this to the same chat." : `Copy the prompt into a new chat${asked.pictures.length ? ", attach the pictures" : ""}, and bring the whole reply back.`;
  $("#exchange-copy").textContent = "Copy the prompt";
  $("#exchange-copy-whole").textContent = "Copy the whole prompt";
  problem(form, asked.problem ? `That reply cannot be used: ${asked.problem}` : "");
  $("#exchange-pictures").replaceChildren(...asked.pictures.map((name, index) => h("li", {},
    h("a", { href: at(`paste/${name}`), download: name }, h("img", { src: at(`paste/${name}`), alt: `Picture ${index + 1} of the prompt` }), h("span", {}, `Save picture ${index + 1}`)))));
  $("#exchange-title").focus({ preventScroll: true });
  $("#progress").scrollIntoView({ block: "nearest" });
}
for (const [button, name] of [["#exchange-copy", "prompt"], ["#exchange-copy-whole", "whole"]]) {
  $(button).addEventListener("click", () => tried(async () => {
    const field = $("#exchange").elements[name];
    field.select();
    try { await navigator.clipboard.writeText(field.value); } catch { document.execCommand("copy"); }
    $(button).textContent = "Copied";
  }));
}
$("#exchange").addEventListener("submit", (event) => {
  event.preventDefault();
  tried(async () => { await post("reply", { number: progress.exchange.number, text: $("#exchange").elements.reply.value }); });
});

// While nobody answers it is said on the page and in the dialog that is open, and no work is waited for.
function lost(error) {
  const first = document.body.dataset.ready !== "lost", open = $("dialog[open]:not(#agree)");
  document.body.dataset.ready = "lost";
  alarm(error.message);
  if (!(error instanceof Gone)) return;
  for (const item of waiting.splice(0)) item.reject(error);
  if (first && open) problem(open, error);
}

function found() {
  alarm("");
  const open = $("dialog[open]:not(#agree)");
  if (open) problem(open, "");
}

async function follow() {
  let ticks = "", seen = "";
  for (;;) {
    const run = here.run, left = leaving.signal;
    try {
      const now = await get(`api/progress?known=${ticks}`, { signal: left });
      if (run !== here.run) throw new Left();
      progress = now;
      if (document.body.dataset.ready === "lost") found();
      const planned = progress.stages.some((stage) => stage.stage === "plan" && stage.finished);
      const others = progress.working.map((item) => `${item.run} ${item.asks}`).join();
      const key = [run, progress.ended, progress.asks, progress.running, progress.name, planned, others, progress.running ? "" : progress.ticks].join();
      ticks = progress.ticks;
      showProgress();
      showOthers(progress.working);
      showSpent(progress.spent);
      showExchange(progress.running ? progress.exchange : null);
      if (key !== seen) {
        // A board that begins to be changed is the one that is shown: its buttons wait, and nothing is asked for.
        if (progress.running && page.version) { page = { ...page, version: "" }; await showPage(); } else await refresh();
        if (run !== here.run) throw new Left();
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
      if (progress.failed && !progress.running && here.run) say(progress.failed);
      document.body.dataset.ready = progress.running ? "working" : "idle";
    } catch (error) {
      if (left.aborted || error instanceof Left) {
        leaving = new AbortController();
        ticks = seen = "";
        await showPage();
        continue;
      }
      if (error instanceof Refused && run) { leave(error.message); continue; }
      lost(error);
      await new Promise((resolve) => setTimeout(resolve, 1500));
    }
  }
}

// After a reload the address says which board is shown, and the forms hold what was typed.
async function begin() {
  here.run = route().run;
  try { await loadTyped(); } catch { /* `follow` says what is wrong */ }
  await follow();
}

begin();
