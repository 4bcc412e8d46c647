/* Plays a board: `kathaPlayer(place, board)` fills an element and returns { play, pause, seek, close }.
   board: { title, told, frames: [{ number, mark, kind, seconds, image, alt, caption, spoken, status, rows: [[name, words]],
   camera: [[zoom, left, top]] }],
   sounds: [{ start, length, source }] }; image and source are addresses of any kind. camera, where a frame has it: what is seen of
   its picture in equal steps of its time, left and top in shares of it. Every page may use it. */
"use strict";

function kathaPlayer(place, board) {
  const make = (tag, attributes = {}, ...inside) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...inside);
    return made;
  };
  const signs = {
    first: "M6 5v14M18 5l-8 7 8 7", before: "M15 5l-7 7 7 7", next: "M9 5l7 7-7 7", last: "M18 5v14M6 5l8 7-8 7",
    play: "M8 5l11 7-11 7z", pause: "M8 5v14M16 5v14", loop: "M5 13a7 7 0 1 0 2-6M5 4v4h4",
    mute: "M4 9v6h4l5 4V5L8 9zM17 9.5l4 5M21 9.5l-4 5", full: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  };
  const drawn = (sign) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", signs[sign]);
    if (sign === "play") path.setAttribute("class", "full");
    svg.append(path);
    return svg;
  };
  const starts = [0];
  for (const frame of board.frames) starts.push(starts.at(-1) + frame.seconds);
  const total = starts.at(-1);
  const state = { at: 0, playing: false, rate: 1, loop: false, muted: false, shown: -1, since: 0, tick: 0 };

  const picture = make("img", { alt: "" });
  const words = make("figcaption"), figure = make("figure", {}, make("div", { class: "picture" }, picture), words);
  const notes = make("aside", { "aria-label": "Notes of the frame" });
  const list = make("ol", { "aria-hidden": "true" });
  for (const frame of board.frames) {
    const kind = frame.kind === "scene" ? "" : "inserted";
    const item = make("li", { class: `${kind} ${frame.status}`.trim(), title: `${frame.mark}: ${frame.caption}` });
    item.style.flex = `${frame.seconds} 1 0`;
    list.append(item);
  }
  const line = make("input", { type: "range", min: 0, max: total, step: "any", value: 0, "aria-label": "Time" });
  const time = make("output"), told = make("p", { class: "told", role: "status" });
  const sounds = board.sounds.map((sound) => ({ ...sound, voice: new Audio(sound.source) }));

  const button = (name, sign, act, key) => {
    const made = make("button", { type: "button", "aria-label": name, title: key ? `${name} (${key})` : name }, signs[sign] ? drawn(sign) : sign);
    made.addEventListener("click", act);
    return made;
  };
  const toggled = (name, sign, act, key) => {
    const made = button(name, sign, () => { act(); made.setAttribute("aria-pressed", String(made.on())); }, key);
    made.setAttribute("aria-pressed", "false");
    return made;
  };
  const index = () => Math.max(0, Math.min(board.frames.length - 1, starts.findLastIndex((start) => start <= state.at + 1e-6)));
  const clock = (seconds) => `${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;

  function show() {
    const at = index(), frame = board.frames[at];
    time.value = `${clock(state.at)} / ${clock(total)}`;
    line.value = state.at;
    line.setAttribute("aria-valuetext", `frame ${frame.mark}, ${clock(state.at)}`);
    if (at === state.shown) return film(frame, at);
    list.children[state.shown]?.classList.remove("here");
    list.children[at].classList.add("here");
    state.shown = at;
    picture.src = frame.image;
    picture.alt = frame.alt;
    figure.className = frame.kind === "scene" ? "" : "inserted";
    words.replaceChildren(make("p", { dir: "auto" }, frame.caption));
    if (frame.spoken) words.append(make("p", { class: "spoken", dir: "auto" }, frame.spoken));
    const rows = frame.rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { dir: "auto" }, value)]);
    notes.replaceChildren(make("h2", {}, `Frame ${frame.mark}, ${frame.seconds} s`), make("dl", {}, ...rows));
    film(frame, at);
    if (!state.playing) told.textContent = `Frame ${frame.mark} of ${board.frames.length}. ${frame.caption}`;
  }

  const quiet = matchMedia("(prefers-reduced-motion: reduce)");
  /* Show what the camera sees now: that part of the picture, as large as the whole. */
  function film(frame, at) {
    const steps = quiet.matches || !picture.naturalWidth ? null : frame.camera;
    if (!steps) {
      picture.style.transform = picture.style.clipPath = "";
      return;
    }
    const place = Math.min(1, Math.max(0, (state.at - starts[at]) / frame.seconds)) * (steps.length - 1);
    const before = steps[Math.floor(place)], after = steps[Math.ceil(place)];
    const [zoom, x, y] = before.map((value, part) => value + (after[part] - value) * (place % 1));
    const width = picture.clientWidth, height = picture.clientHeight;
    const scale = Math.min(width / picture.naturalWidth, height / picture.naturalHeight);
    const wide = picture.naturalWidth * scale, tall = picture.naturalHeight * scale;
    const left = (width - wide) / 2, top = (height - tall) / 2;
    const from = [left + x * wide, top + y * tall], to = [from[0] + wide / zoom, from[1] + tall / zoom];
    picture.style.clipPath = `inset(${from[1]}px ${width - to[0]}px ${height - to[1]}px ${from[0]}px)`;
    picture.style.transform = `translate(${left - from[0] * zoom}px, ${top - from[1] * zoom}px) scale(${zoom})`;
  }

  function hear() {
    for (const { voice, start, length } of sounds) {
      const into = state.at - start, due = state.playing && into >= 0 && into < length;
      voice.muted = state.muted;
      voice.playbackRate = state.rate;
      if (!due) { if (!voice.paused) voice.pause(); continue; }
      if (voice.paused || Math.abs(voice.currentTime - into) > 0.4) {
        voice.currentTime = into;
        voice.play().catch(() => { /* a browser may want a click first */ });
      }
    }
  }

  function tick(now) {
    if (!state.playing) return;
    state.at += Math.max(0, (now - state.since) / 1000) * state.rate;
    state.since = now;
    if (state.at >= total) {
      state.at = state.loop ? state.at % total : total;
      if (!state.loop) { pause(); show(); return; }
    }
    show();
    hear();
    state.tick = requestAnimationFrame(tick);
  }

  function play() {
    if (state.playing) return;
    if (state.at >= total) state.at = 0;
    state.playing = true;
    state.since = performance.now();
    start.replaceChildren(drawn("pause"));
    start.setAttribute("aria-label", "Pause");
    hear();
    state.tick = requestAnimationFrame(tick);
  }

  function pause() {
    state.playing = false;
    cancelAnimationFrame(state.tick);
    start.replaceChildren(drawn("play"));
    start.setAttribute("aria-label", "Play");
    hear();
  }

  function seek(seconds) {
    state.at = Math.max(0, Math.min(total, seconds));
    show();
    hear();
  }
  const step = (by) => seek(starts[Math.max(0, Math.min(board.frames.length - 1, state.shown + by))]);

  const start = button("Play", "play", () => (state.playing ? pause() : play()), "Space");
  const loop = toggled("Play again and again", "loop", () => { state.loop = !state.loop; }, "L");
  const mute = toggled("No sound", "mute", () => { state.muted = !state.muted; hear(); }, "M");
  const said = toggled("Words below", "Words", () => root.classList.toggle("silent"), "C");
  const noted = toggled("Notes beside", "Notes", () => root.classList.toggle("noted"), "N");
  loop.on = () => state.loop;
  mute.on = () => state.muted;
  said.on = () => !root.classList.contains("silent");
  noted.on = () => root.classList.contains("noted");
  said.setAttribute("aria-pressed", "true");
  mute.hidden = !sounds.length;
  const speed = make("select", { "aria-label": "Speed" });
  for (const rate of [0.5, 1, 1.5, 2]) speed.append(new Option(`${rate}\u00d7`, rate, rate === 1, rate === 1));
  speed.addEventListener("change", () => { state.rate = Number(speed.value); hear(); });
  const full = button("Full screen", "full", () => (
    document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen?.()
  ), "F");
  const keys = [
    ["Space, K", "play or pause"], ["\u2190 \u2192", "frame before, next frame"], ["Home, End", "first, last frame"],
    ["F", "full screen"], ["C", "words below"], ["N", "notes beside"], ["L", "again and again"], ["M", "no sound"],
  ];
  const rows = keys.map(([key, does]) => make("tr", {}, make("td", {}, make("kbd", {}, key)), make("td", {}, does)));
  const close = make("button", { type: "submit" }, "Close");
  const help = make("dialog", { "aria-label": "Keys" }, make("table", {}, make("tbody", {}, ...rows)),
    make("form", { method: "dialog" }, close));
  const asks = button("Keys", "?", () => help.showModal(), "?");

  const again = () => film(board.frames[state.shown], state.shown);
  const watch = new ResizeObserver(again);
  picture.addEventListener("load", again);
  watch.observe(picture);
  line.addEventListener("input", () => seek(Number(line.value)));
  const controls = make("div", { class: "keys" },
    button("First frame", "first", () => seek(0), "Home"), button("Frame before", "before", () => step(-1), "\u2190"), start,
    button("Next frame", "next", () => step(1), "\u2192"),
    button("Last frame", "last", () => seek(starts[board.frames.length - 1]), "End"),
    time, make("span", { class: "space" }), speed, loop, mute, said, noted, full, asks);
  const root = make("section", { class: "player", "aria-label": board.title, tabindex: "-1" },
    make("header", {}, make("h1", { dir: "auto" }, board.title), make("p", {}, board.told)),
    make("div", { class: "show" }, figure, notes),
    make("footer", {}, make("div", { class: "line" }, list, line), controls), told, help);

  const does = {
    " ": () => start.click(), k: () => start.click(), ArrowLeft: () => step(-1), ArrowRight: () => step(1),
    Home: () => seek(0), End: () => seek(starts[board.frames.length - 1]), f: () => full.click(), c: () => said.click(),
    n: () => noted.click(), l: () => loop.click(), m: () => mute.hidden || mute.click(), "?": () => asks.click(),
  };
  function pressed(event) {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const own = event.target.closest?.("button, select, dialog") && [" ", "Enter", "ArrowUp", "ArrowDown"].includes(event.key);
    const typing = event.target.closest?.("textarea, input:not([type=range]), [contenteditable]");
    if (!does[key] || event.ctrlKey || event.metaKey || event.altKey || own || typing || help.open) return;
    event.preventDefault();
    does[key]();
  }
  document.addEventListener("keydown", pressed);
  place.replaceChildren(root);
  show();
  return {
    play, pause, seek,
    close() { pause(); watch.disconnect(); document.removeEventListener("keydown", pressed); root.remove(); },
  };
}
