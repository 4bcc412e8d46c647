// The board: the story beside it, cards that can be dragged, the weakest cut, before and after, and the numbers.
import { $, $$, fill, h, here, image, keepFocus, picture, show, shown } from "./desk_parts.js";
import { address } from "./desk_route.js";

// What a person counts are frames; a scene has another number behind a bridge.
const frameOf = (board, scene) => board.cards.find((card) => card.scene === scene && scene !== null);
const words = (card) => card?.caption || card?.prompt || "";
export const SHOT = ["shot_size", "shot_angle", "camera_move", "time_of_day", "weather", "light", "sound"];
const STATUS = { open: "open", changes: "to be changed", approved: "approved" };

// The number of the frame that tells a sentence, which leads to it; where none does, a way to add one.
function whereTold(item, tell) {
  const { frame, lost, text, after } = item, label = lost || "no panel";
  const shown = frame ? [frame, ...item.others].join(", ") : label;
  if (!tell) return h("span", { class: "where" }, shown);
  return frame ? h("a", { class: "where", href: address({ run: here.run, frame }), "aria-label": `Frame ${shown}` }, shown)
    : h("button", { type: "button", class: "where", "data-focus": `tell${text}`, "aria-label": `${label}: add a frame that tells “${text}”`, onclick: () => tell(text, after) }, label);
}

// The story with the frame that tells each sentence, and what of it was not read or not drawn. tell(text, after): begins a
// frame for a sentence that has none.
export function toldList(place, board, tell = null) {
  const story = board.story, unread = story.filter((sentence) => sentence.scene === null).length;
  const counted = unread === 0 ? (board.checks.some((check) => check.name === "left-out") ? "" : "Every sentence was given a frame. Nobody has checked whether the pictures show them: look.")
    : `${unread} of ${story.length} sentences ${unread === 1 ? "has" : "have"} no panel that tells ${unread === 1 ? "it" : "them"}.`;
  const notes = board.read.length ? board.read : [counted].filter(Boolean);
  let after = 0;
  const rows = story.map((item) => {
    const frame = frameOf(board, item.scene)?.number;
    after = frame ?? after;
    return { ...item, frame, after, others: (item.also || []).map((scene) => frameOf(board, scene)?.number).filter(Boolean) };
  });
  rows.push(...notes.map((note) => ({ note })));
  fill(place, rows, (item, at) => at + JSON.stringify(item), (item) => (item.note ? h("p", { class: "note" }, item.note)
    : h("p", { class: item.scene === null ? "unread" : item.lost ? "read partly" : "read", "data-scene": item.scene },
      whereTold(item, tell), ` ${item.text}`, item.lost && item.scene !== null ? h("span", { class: "note" }, " (drawn in part)") : null)));
}

// The frame that the address names stands out, and is in sight when it was just named.
export function showFrame(number, moved) {
  for (const card of $$("#cards .card")) card.classList.toggle("shown", Number(card.dataset.number) === number);
  const shown = $("#cards .card.shown");
  if (moved) shown?.scrollIntoView({ block: "nearest" });
}

// The panels of a plan, in the words that they would be drawn from.
export function plannedList(place, board) {
  place.replaceChildren(...board.cards.map((card) => h("li", {}, card.prompt, " ", facts(card))));
}

function cutAfter(board, card) {
  const later = board.cards.slice(card.number).find((other) => other.scene !== null);
  const cut = board.cuts.find((item) => item.pair[0] === card.scene && later && item.pair[1] === later.scene);
  return cut && card.scene !== null ? cut : null;
}

// What a model could answer about a cut, where one was asked; else where a bridge could go.
function cutWords(cut, bridged) {
  if (!cut || (cut.asked === null && (bridged || !cut.weakest))) return null;
  const said = cut.asked === null ? "" : `${cut.answered} of ${cut.asked} question${cut.asked === 1 ? "" : "s"} about the cut to the next answered`;
  return h("p", { class: `cut${cut.weakest && cut.answered !== cut.asked ? " weak" : ""}` }, said,
    cut.weakest && !bridged ? [said ? ". " : "", h("a", { href: "#weakest" }, "A bridge could go here")] : null);
}

function facts(card) {
  const told = [card.place, ...SHOT.map((name) => card[name]), card.duration ? `${card.duration} s` : "", card.own ? "own picture" : ""];
  const said = card.comments.length ? `${card.comments.length} comment${card.comments.length === 1 ? "" : "s"}` : "";
  return [...told.filter(Boolean).map((words) => h("span", { class: "chip" }, words)),
    card.status ? h("span", { class: `chip ${card.status}` }, STATUS[card.status]) : null, said ? h("span", { class: "chip" }, said) : null].filter(Boolean);
}

function cardOf(board, card, acts) {
  const name = card.kind === "scene" ? `Frame ${card.number}` : `Frame ${card.number}, ${card.kind}`;
  const scene = card.kind === "scene" && card.scene !== null && card.scene !== card.number ? ` · scene ${card.scene}` : "";
  const tool = (act, label, hidden, pressed) => h("button", {
    type: "button", "data-focus": `${act}${card.number}`, "data-act": act, "aria-pressed": pressed,
    "aria-label": `${hidden} frame ${card.number}`, onclick: () => acts[act](card),
  }, label);
  return h("li", { class: `card ${card.kind}${card.locked ? " locked" : ""}`, "data-number": card.number, id: `frame-${card.number}` },
    h("figure", {},
      image(card.sha256, `${name}: ${words(card)}`),
      h("figcaption", {},
        h("input", { type: "checkbox", class: "pick", value: card.number, "aria-label": `Choose frame ${card.number}`, onchange: (event) => acts.pick(card.number, event.target.checked) }),
        h("b", {}, `${card.number}`, card.kind === "scene" ? scene : ` ${card.kind}`, card.locked ? " · locked" : ""),
        h("p", {}, words(card)),
        card.dialogue ? h("p", { class: "dialogue" }, `“${card.dialogue}”`) : null,
        card.notes ? h("p", { class: "note" }, card.notes) : null,
        card.stale ? h("p", { class: "stale" }, "Its neighbours have changed since it was drawn.") : null,
        card.stand_ins.length ? h("p", { class: "note" }, `A plain shape stands for: ${card.stand_ins.join(", ")}.`) : null,
        h("p", { class: "facts" }, facts(card)),
        cutWords(cutAfter(board, card), board.cards[card.number]?.kind !== "scene")),
      h("div", { class: "tools" },
        h("button", {
          type: "button", class: "handle", "data-focus": `move${card.number}`,
          "aria-label": `Move frame ${card.number}, with the arrow keys or by dragging`,
        }, "⠿"),
        card.kind === "scene" ? null : tool("again", "Again", "Draw again"),
        tool("edit", "Edit", "Edit"), card.sha256 && !card.locked ? tool("pen", "Pen", "Pen over") : null, tool("takes", "Takes", "Takes of"),
        tool("lock", card.locked ? "Unlock" : "Lock", card.locked ? "Unlock" : "Lock", String(card.locked)),
        card.kind === "scene" ? null : tool("remove", "Take out", "Take out"))));
}

export function showBoard(page, acts, ready) {
  const board = page.board;
  keepFocus(() => {
    toldList($("#told-list"), board, acts.tell);
    for (const button of $$("#told-list button")) button.disabled = !ready;
    fill($("#cards"), board.cards, (card) => JSON.stringify([card, cutAfter(board, card), board.cards[card.number]?.kind]), (card) => cardOf(board, card, acts));
    for (const card of board.cards) showDrawn(card.number, card.sha256);
    for (const button of $$("#cards button, #cards .pick")) button.disabled = !ready;
  });
  show($("#hint"), ready);
  showChecks(board, acts, ready);
  showWeakest(page, acts, ready);
  show($("#add-frame"), ready);
  show($("#before"), board.before.length > 0);
  $("#before-list").replaceChildren(
    ...board.before.map((sha256, at) => h("li", {}, image(sha256, `Before the repair, frame ${at + 1}`))));
  $("#after-list").replaceChildren(
    ...board.cards.map((card) => h("li", { class: card.kind }, image(card.sha256, `Now, frame ${card.number}`))));
  showNumbers(board);
}

// What can be checked of a board; what is wanting leads to its frame, or begins one.
function showChecks(board, acts, ready) {
  const place = $("#checks");
  show(place, board.checks.length > 0);
  const point = (check, item) => {
    const frame = item.scene === null ? null : frameOf(board, item.scene)?.number;
    if (frame) return h("li", {}, h("a", { href: address({ run: here.run, frame }) }, `Frame ${frame}`), item.words ? `: ${item.words}` : "");
    const lost = check.name === "sentences" ? board.story.find((one) => one.scene === null && one.text.includes(item.words)) : null;
    return h("li", {}, lost ? h("button", { type: "button", class: "link", disabled: !ready, "data-focus": `check${item.words}`, onclick: () => acts.tell(lost.text, told(board, lost)) }, "Add a frame", h("span", { class: "sr" }, ` for “${item.words}”`)) : null, lost ? ": " : "", item.words);
  };
  fill($("#checks ul"), board.checks, (check) => JSON.stringify([check, ready, board.cards.length]), (check) => h("li", { class: check.good ? "good" : "wanting" },
    !check.points.length || check.name === "bridge" ? inFrames(check.said, board)
      : h("details", { open: check.points.length < 4 }, h("summary", {}, check.said), h("ul", {}, check.points.map((item) => point(check, item))))));
}

// The frame behind which a sentence without a picture belongs.
function told(board, sentence) {
  const before = board.story.slice(0, board.story.indexOf(sentence)).reverse().find((one) => frameOf(board, one.scene));
  return before ? frameOf(board, before.scene).number : 0;
}

const inFrames = (said, board) => said.replace(/between scenes (\d+) and (\d+)/g, (_, one, two) => `between frames ${frameOf(board, Number(one))?.number ?? one} and ${frameOf(board, Number(two))?.number ?? two}`);

function said(words, right) {
  const mark = right === null ? "–" : right ? "✓" : "✗";
  return h("span", { class: `given ${right === null ? "none" : right ? "right" : "wrong"}` },
    h("span", { class: "mark", "aria-label": right === null ? "not judged" : right ? "right" : "wrong", role: "img" }, mark), ` ${words}`);
}

// asked: the questions of a cut; bridge: what the frame is called that the second answer was given with.
function questions(asked, bridge) {
  if (!asked.length) return h("p", { class: "note" }, "No viewer was asked about this cut: look at it yourself.");
  return h("div", {},
    h("h3", {}, "What was asked about the pictures alone"),
    h("ul", { class: "plain asked-list" }, asked.map((item) => h("li", {},
      h("p", { class: "question" }, item.question),
      h("p", {}, h("span", { class: "note" }, "The story says: "), item.story),
      h("p", {}, h("span", { class: "note" }, item.after ? "From the pictures, before: " : "From the pictures: "), said(item.before, item.before_right)),
      item.after ? h("p", {}, h("span", { class: "note" }, `With ${bridge}: `), said(item.after, item.after_right)) : null))));
}

function between(board, cut, middle) {
  const side = (sha256, scene) => {
    const card = frameOf(board, scene), name = card ? `Frame ${card.number}` : `Scene ${scene}`;
    return h("li", {}, image(sha256, `${name}: ${words(card)}`), h("span", {}, name));
  };
  return h("ul", { class: `around${middle ? "" : " two"}` }, side(cut.left, cut.pair[0]), middle || null, side(cut.right, cut.pair[1]));
}

function showWeakest(page, acts, ready) {
  const place = $("#weakest"), cut = page.board.weakest;
  show(place, Boolean(cut));
  if (!cut) return;
  const bridge = page.board.cards.find((card) => card.transition && card.transition.join() === cut.pair.join());
  const middle = cut.bridge ? h("li", { class: "bridge" }, image(cut.bridge, `The bridge: ${words(bridge)}`), h("span", {}, "The bridge")) : null;
  const button = (label, act) => h("button", { type: "button", disabled: !ready, onclick: act, "data-focus": label }, label);
  place.replaceChildren(...shown(
    h("h2", { id: "weakest-title" }, cut.bridge ? "The bridge" : cut.viewed ? "The weakest cut" : "Where a bridge could go"),
    between(page.board, cut, middle),
    cut.bridge ? h("p", {}, inFrames(cut.effect, page.board)) : null,
    bridge?.stale ? h("p", { class: "stale" }, "Its neighbours have changed since it was drawn: draw it again, or take it out.") : null,
    cut.viewed ? questions(cut.asked, "the bridge") : null,
    h("div", { class: "row" },
      bridge ? button("Draw the bridge again", () => acts.again(bridge)) : null,
      bridge ? button("Rewrite the bridge", () => acts.edit(bridge)) : button("Draw a bridge", () => acts.bridge(cut.pair)),
      bridge ? button("Take the bridge out", () => acts.remove(bridge)) : null,
      button("Ask what could be drawn", () => acts.moves())),
    moves(page, acts, ready),
    proposals(page, acts, ready),
    cut.viewed ? h("details", {}, h("summary", {}, "Why this one"), h("p", {}, cut.reason), h("p", {}, page.board.decision)) : null));
}

// What could be drawn so that the cut is understood, each with its price.
function moves(page, acts, ready) {
  if (!page.moves.length) return "";
  const price = (dollars) => (dollars === null ? "price not known" : dollars === 0 ? "free" : `about $${dollars.toFixed(2)}`);
  return h("ol", { class: "plain moves", id: "moves" }, page.moves.map((item, at) => h("li", {},
    h("p", {}, h("b", {}, item.kind), `. ${item.reason}`),
    item.prompts.map((prompt) => h("p", { class: "note" }, prompt)),
    h("button", { type: "button", disabled: !ready, "data-focus": `try${at}`, onclick: () => acts.tryMove(at) },
      `Draw and measure it (${price(item.dollars)})`))));
}

function proposals(page, acts, ready) {
  if (!page.proposals.length) return "";
  const redrawn = (item) => item.move && item.move.kind !== "bridge";
  return h("ol", { class: "takes", id: "proposals" }, page.proposals.map((item, at) => h("li", {},
    image(item.sha256, `${redrawn(item) ? "Drawing" : "Bridge"} ${at + 1}: ${item.prompt}`),
    page.board.weakest?.viewed ? h("p", { class: "note" }, item.reason) : null,
    h("button", { type: "button", disabled: !ready, "data-focus": `insert${at}`, onclick: () => acts.insert(item) },
      `${redrawn(item) ? "Take drawing" : "Insert bridge"} ${at + 1}`))));
}

export function showReview(review, board, choose) {
  const place = $("#review");
  show(place, Boolean(review));
  if (!review) { place.replaceChildren(); place.dataset.shown = ""; return; }
  const key = review.takes.map((take) => take.sha256).join();
  if (place.dataset.shown === key) return;
  place.dataset.shown = key;
  const prompt = h("textarea", { name: "prompt", rows: "2", maxlength: "4000" });
  prompt.value = review.prompt;
  const takes = review.takes.map((take, at) => h("li", { class: take.proposed ? "proposed" : "" },
    h("label", {},
      image(take.sha256, `Bridge ${at + 1}: ${review.prompt}`),
      h("span", {}, h("input", { type: "radio", name: "take", value: take.name, checked: take.proposed }), ` Bridge ${at + 1}`,
        take.proposed ? " (proposed)" : ""))));
  const chosen = () => $("input[name=take]:checked", place)?.value;
  const middle = h("li", { class: "bridge" });
  const fill = () => {
    const at = review.takes.findIndex((take) => take.name === chosen());
    middle.replaceChildren(image(review.takes[Math.max(at, 0)].sha256, `Bridge ${at + 1}, between the two frames`), h("span", {}, `Bridge ${at + 1}`));
  };
  const proposed = `bridge ${review.takes.findIndex((take) => take.proposed) + 1}`;
  const [left, right] = review.pair.map((scene) => frameOf(board, scene)?.number ?? scene);
  place.replaceChildren(
    h("h2", { id: "review-title", tabindex: "-1" }, review.viewed ? `Between frames ${left} and ${right} the pictures tell least` : `A frame could go between frames ${left} and ${right}`),
    between(board, review, middle),
    questions(review.viewed ? review.asked : [], proposed),
    h("h3", {}, "A frame in between may help. Choose one:"),
    h("ol", { class: "takes" }, takes),
    h("p", {}, `${review.accepts ? `katha proposes to insert ${proposed}` : "katha proposes to leave the board as it is"}. It waits for you here, so that no frame goes in that you have not seen. If you are in doubt, leave it: a bridge can be drawn and put in at any time.`),
    ...(review.viewed ? [h("details", {}, h("summary", {}, "Why"), h("p", {}, review.reason), h("p", {}, review.rule))] : []),
    h("div", { class: "row" },
      h("button", { type: "button", class: review.accepts ? "main" : "", "data-choice": "accept", onclick: () => {
        const name = chosen(), first = review.takes.find((take) => take.proposed);
        choose(first && name === first.name ? { action: "accept" } : { action: "choose", candidate: name });
      } }, "Insert it"),
      h("button", { type: "button", class: review.accepts ? "" : "main", "data-choice": "reject", onclick: () => choose({ action: "reject" }) }, "Leave the board as it is")),
    h("div", { class: "form rewrite" },
      h("label", {}, "Or say what the frame is to show", prompt),
      h("div", { class: "row" }, h("button", { type: "button", "data-choice": "edit", onclick: () => choose({ action: "edit", prompt: prompt.value }) }, "Draw that instead"))));
  fill();
  place.onchange = fill;
  $("h2", place).focus({ preventScroll: true });
}

// A picture that was drawn just now stands on its card while the board is still being drawn or judged.
export function showDrawn(number, sha256) {
  const shown = sha256 && document.querySelector(`#cards .card[data-number="${number}"] :is(img, .blank)`);
  if (!shown) return;
  if (shown.matches(".blank")) shown.replaceWith(image(sha256, shown.getAttribute("aria-label").replace(", not drawn yet", "")));
  else if (shown.getAttribute("src") !== picture(sha256)) shown.src = picture(sha256);
}

// Numbers are shown of a model that can answer for a viewer, and of no other.
function showNumbers(board) {
  const numbers = board.graded ? board.numbers : null, notes = board.graded ? board.notes : [];
  show($("#numbers"), Boolean(numbers));
  if (!numbers) return;
  const row = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const points = (value) => (value === null ? "–" : value.toFixed(1));
  $("#numbers-list").replaceChildren(
    h("dl", { class: "fields" },
      row("Recoverable from the text", points(numbers.text)),
      ...(numbers.before === null ? [] : [row("From the pictures, before", points(numbers.before))]),
      row("From the pictures, now", points(numbers.image)),
      row("Lost (STG)", points(numbers.lost)),
      row("Rests on", `${numbers.valid} of ${numbers.questions} questions, judged by ${numbers.judge || "nobody"}`)),
    ...notes.map((note) => h("p", { class: "note" }, note)));
}

// Dragging: by pointer (mouse, pen or finger) at the handle, or by arrow keys on it. `moved(from, to)` is told at the end.
export function makeDraggable(list, moved, announce) {
  let held = null;
  const cards = () => [...list.querySelectorAll(".card")];
  const place = (card) => cards().indexOf(card) + 1;

  list.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle || handle.disabled || event.button > 0) return;
    event.preventDefault();
    handle.focus();
    held = { handle, card: handle.closest(".card"), next: handle.closest(".card").nextSibling };
    held.card.classList.add("held");
    handle.setPointerCapture(event.pointerId);
  });
  list.addEventListener("pointermove", (event) => {
    if (!held) return;
    const over = document.elementFromPoint(event.clientX, event.clientY)?.closest("#cards .card");
    if (!over || over === held.card) return;
    const box = over.getBoundingClientRect(), before = place(over) < place(held.card);
    const beyond = before ? event.clientX < box.left + box.width * 0.7 : event.clientX > box.left + box.width * 0.3;
    if (beyond || box.width > list.clientWidth * 0.7) list.insertBefore(held.card, before ? over : over.nextSibling);
  });
  const drop = (keep) => {
    if (!held) return;
    const { card, next } = held;
    held = null;
    card.classList.remove("held");
    const from = Number(card.dataset.number), to = place(card);
    if (!keep) list.insertBefore(card, next);
    else if (from !== to) moved(from, to);
  };
  list.addEventListener("pointerup", () => drop(true));
  list.addEventListener("pointercancel", () => drop(false));
  list.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { drop(false); return; }
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const handle = event.target.closest(".handle");
    if (!step || !handle || handle.disabled) return;
    event.preventDefault();
    const from = Number(handle.closest(".card").dataset.number), to = from + step;
    if (to < 1 || to > cards().length) { announce(`Frame ${from} is at the end.`); return; }
    moved(from, to);
  });
}
