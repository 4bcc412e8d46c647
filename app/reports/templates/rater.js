// One participant's page: consent, screens one after the other, answers kept in this browser and saved as a file.
(() => {
  const study = JSON.parse(document.getElementById("study").textContent);
  const $ = (selector, within = document) => within.querySelector(selector);
  const key = `katha-people:${study.study}:${study.page}`;
  const steps = study.screens.flatMap((screen, at) =>
    screen.single ? screen.items.map((item) => ({ at, items: [item] })) : [{ at, items: screen.items }]);
  let state = null, step = 0, shown = -1, since = 0, spent = 0;

  const make = (tag, values = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };

  // What is kept: in this browser after every step, and in a file when it is asked for.
  function keep() {
    state.saved = new Date().toISOString();
    try {
      localStorage.setItem(key, JSON.stringify(state));
    } catch {
      say("This browser keeps nothing for this page. Save what is done as a file before you close it.");
    }
  }
  function kept() {
    try {
      const found = JSON.parse(localStorage.getItem(key));
      return fits(found) ? found : null;
    } catch {
      return null;
    }
  }
  const fits = (found) => Boolean(found) && found.format === 1 && found.study === study.study
    && found.page === study.page && typeof found.rater === "string" && Array.isArray(found.answers);
  const answered = (item) => state.answers.some((answer) => answer.item === item.id);
  const code = () => [...crypto.getRandomValues(new Uint8Array(5))].map((n) => n.toString(36).padStart(2, "0")).join("");
  function save() {
    keep();
    const blob = new Blob([JSON.stringify(state, null, 1) + "\n"], { type: "application/json" });
    const link = make("a", { href: URL.createObjectURL(blob), download: `answers_${study.page}_${state.rater}.json` });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  function say(words) {
    $("#trouble").textContent = words;
    $("#trouble").hidden = !words;
  }

  // Screens.
  function show(name) {
    for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== name;
    $(".along").hidden = name === "intro";
    $(".along progress").value = name === "end" ? steps.length : step;
    $(".along output").textContent = name === "end" ? "Done" : `${step + 1} of ${steps.length}`;
  }
  function next() {
    step = steps.findIndex((one) => one.items.some((item) => !answered(item)));
    if (step < 0) {
      if (!state.finished) {
        state.finished = new Date().toISOString();
        keep();
      }
      show("end");
      $("#code").textContent = `Your code is ${state.rater}.`;
      $("#h-end").focus();
      return;
    }
    const { at, items } = steps[step], screen = study.screens[at], fresh = at !== shown;
    show("trial");
    if (fresh) {
      $("#h-trial").textContent = screen.title;
      $("#told").textContent = screen.told;
      $("#evidence").replaceChildren(...evidence(screen));
    }
    $("#items").replaceChildren(...items.map(field));
    $("#trial .message").textContent = "";
    if (fresh) {
      scrollTo(0, 0);
      $("#h-trial").focus({ preventScroll: true });
    } else {
      $("#items legend").focus({ preventScroll: false });
    }
    shown = at;
    spent = 0;
    since = document.hidden ? 0 : performance.now();
  }
  function evidence(screen) {
    const parts = screen.boards.map((board) => {
      const frames = board.pictures.map((name, place) => {
        const label = `${board.label ? board.label + ", p" : "P"}icture ${place + 1} of ${board.pictures.length}`;
        const button = make("button", { type: "button", className: "frame", title: "Show it large" },
          make("img", { src: study.pictures[name], alt: label }));
        button.addEventListener("click", () => large(study.pictures[name], label));
        return make("li", {}, button);
      });
      const list = make("ol", { className: "frames" }, ...frames);
      return make("section", {}, ...(board.label ? [make("h3", { textContent: board.label })] : []), list);
    });
    if (screen.text) {
      const text = make("div", { className: "told text", textContent: screen.text });
      parts.unshift(make("section", {}, make("h3", { textContent: "The story" }), text));
    }
    return parts;
  }
  function large(source, label) {
    const dialog = $("dialog");
    Object.assign($("img", dialog), { src: source, alt: label });
    dialog.showModal();
  }

  // Items.
  function field(item) {
    const set = make("fieldset", { className: `item ${item.kind}`, id: item.id });
    set.append(make("legend", { textContent: item.text, tabIndex: -1 }));
    if (item.kind === "ranking") {
      for (const place of ["First", "Second", "Third"]) {
        const options = [make("option", { value: "", textContent: place === "First" ? "None of them is told" : "No other" }),
          ...item.options.map((name) => make("option", { value: name, textContent: name }))];
        set.append(make("label", {}, make("span", { textContent: place }), make("select", {}, ...options)));
      }
      set.append(make("label", { className: "agree" }, make("input", { type: "checkbox" }), make("span", { textContent: "That is my choice." })));
    } else if (item.kind === "note") {
      set.append(make("textarea", { rows: 2 }));
    } else {
      item.options.forEach((option, place) => set.append(make("label", {},
        make("input", { type: "radio", name: item.id, value: String(place) }), make("span", { textContent: option }))));
    }
    return set;
  }
  function value(item) {
    const set = document.getElementById(item.id);
    if (item.kind === "ranking") {
      if (!$("input", set).checked) return null;
      const chosen = [...set.querySelectorAll("select")].map((list) => list.value).filter(Boolean);
      return new Set(chosen).size === chosen.length ? chosen : null;
    }
    if (item.kind === "note") return $("textarea", set).value;
    const chosen = $("input:checked", set);
    return chosen && (item.kind === "choice" ? item.options[Number(chosen.value)] : Number(chosen.value));
  }
  function go(event) {
    event.preventDefault();
    const { items } = steps[step], missing = items.filter((item) => value(item) === null);
    for (const item of items) document.getElementById(item.id).classList.toggle("missing", missing.includes(item));
    if (missing.length) {
      $("#trial .message").textContent = missing[0].kind === "ranking"
        ? "Name each lesson once at most, and confirm your choice."
        : `Please answer ${items.length > 1 ? `the marked ${missing.length === 1 ? "question" : "questions"}` : "the question"}.`;
      $("input, select", document.getElementById(missing[0].id)).focus();
      return;
    }
    if (since) spent += performance.now() - since;
    for (const item of items) state.answers.push({ item: item.id, value: value(item), ms: Math.round(spent / items.length) });
    keep();
    next();
  }
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("#trial").hidden || $("dialog").open) return;
    if (event.target.matches("select, textarea, input[type=checkbox]") || !/^[1-9]$/.test(event.key)) return;
    const sets = [...document.querySelectorAll("#items fieldset:not(.note)")];
    const own = event.target.closest?.("#items fieldset") ?? sets.find((set) => !$("input:checked", set)) ?? sets[0];
    const radio = own?.querySelectorAll("input[type=radio]")[Number(event.key) - 1];
    if (!radio) return;
    event.preventDefault();
    radio.checked = true;
    const open = sets.slice(sets.indexOf(own) + 1).find((set) => !$("input:checked", set));
    (open ? $("legend", open) : radio).focus();
  }

  // Beginning, going on, and beginning anew.
  function begin(event) {
    event.preventDefault();
    const form = $("#intro form"), group = $("input[name=group]:checked", form);
    if (study.groups.length && !group) $(".message", form).textContent = "Please say which of these you are.";
    else if (!$("input[name=agree]", form).checked) $(".message", form).textContent = "Please agree first, or close this page.";
    else {
      const now = new Date().toISOString();
      state = { format: 1, study: study.study, page: study.page, rater: code(), group: group ? group.value : null,
        consent: now, saved: now, finished: null, answers: [] };
      keep();
      next();
    }
  }
  async function load(event) {
    try {
      const found = JSON.parse(await event.target.files[0].text());
      if (!fits(found)) throw new Error();
      state = found;
      say("");
      keep();
      next();
    } catch {
      say("That file is not one that this page saved.");
    }
  }
  function again() {
    if (!confirm("Forget these answers? Save them first.")) return;
    try {
      localStorage.removeItem(key);
    } catch { /* nothing was kept */ }
    location.reload();
  }

  document.addEventListener("click", (event) => {
    const wanted = event.target.closest("[data-do]")?.dataset.do;
    if (wanted) ({ save, again, close: () => $("dialog").close() })[wanted]();
  });
  document.addEventListener("keydown", press);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && since) { spent += performance.now() - since; since = 0; }
    else if (!document.hidden) since = performance.now();
  });
  $("#intro form").addEventListener("submit", begin);
  $("#trial form").addEventListener("submit", go);
  $("#intro input[type=file]").addEventListener("change", load);
  state = kept();
  if (state) next(); else show("intro");
})();
