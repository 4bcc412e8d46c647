// Addresses: the list of boards is `#/`, a board `#/board/NAME`, one of its frames `#/board/NAME/frame/3`, and what is open
// over it one word more; `several/1,4` is about chosen frames. Back, a bookmark and a reload lead there.

const OVER_A_FRAME = ["edit", "takes", "part", "drawing", "pen", "own"];
const OVER_A_BOARD = ["cast", "history", "export", "add"];
const OVER_SEVERAL = ["several", "copy"];

const plain = (part) => { try { return decodeURIComponent(part); } catch { return part; } };

// {run, frame, frames, dialog} of an address; null where it is none of the desk's (a link within the page).
export function parse(hash) {
  if (hash && !hash.startsWith("#/")) return null;
  const [place, run, kind, number, dialog] = hash.slice(2).split("/").map(plain);
  if (place !== "board" || !run) return { run: "", frame: null, dialog: "" };
  if (kind === "frame") return { run, frame: Number(number) || null, dialog: OVER_A_FRAME.includes(dialog) ? dialog : "" };
  if (OVER_SEVERAL.includes(kind)) return { run, frame: null, frames: (number || "").split(",").map(Number).filter(Boolean), dialog: kind };
  return { run, frame: null, dialog: OVER_A_BOARD.includes(kind) ? kind : "" };
}

export function address({ run = "", frame = null, frames = [], dialog = "" }) {
  if (!run) return "#/";
  if (OVER_SEVERAL.includes(dialog)) return `#/board/${encodeURIComponent(run)}/${dialog}/${frames.join(",")}`;
  return ["#/board", encodeURIComponent(run), ...(frame ? ["frame", frame] : []), ...(dialog ? [dialog] : [])].join("/");
}

export const route = () => parse(location.hash) || { run: "", frame: null, dialog: "" };

let moved = () => {};
export function onMove(act) { moved = act; }

// Lead to an address; with `replace` it takes the place of the one that is left, so that Back skips that.
export function go(to, { replace = false } = {}) {
  const wanted = address(to);
  if (wanted === location.hash) return;
  if (replace) { history.replaceState(null, "", wanted); moved(); } else location.hash = wanted;
}

addEventListener("hashchange", (event) => {
  // A link within the page (`#main`) is followed, and the address stays the board's.
  if (parse(location.hash) === null) history.replaceState(null, "", new URL(event.oldURL).hash || "#/");
  else moved();
});

// A dialog that is closed leaves its address, whoever closed it.
export function closes(dialog, names) {
  dialog.addEventListener("close", () => {
    const now = route();
    if (names.includes(now.dialog)) go({ ...now, dialog: "" }, { replace: true });
  });
}
