// How a new story is drawn: who draws and who looks, the shape of a frame, the look. The lists are looked up when they are
// opened, since every renderer is asked what this machine lacks for it.
import { $, get, h, show } from "./desk_parts.js";

const dollars = (value) => (value === null ? "price not known" : value === 0 ? "free" : `about $${value.toFixed(2)}`);

export class Choices {
  // changed(): called when something was chosen.
  constructor(form, changed) {
    this.form = form;
    this.changed = changed;
    this.known = null;
    $("#how").addEventListener("toggle", () => { if ($("#how").open) this.all(); });
    for (const name of ["renderer", "judge", "size"]) form.elements[name].addEventListener("change", () => { this.show(); changed(); });
    form.elements.style.addEventListener("input", () => this.showLooks());
  }

  async load() {
    if (this.known) return;
    this.known = await get("api/choices", { run: "" });
    for (const place of this.known.places) $("#places").append(h("option", {}, place));
    this.show();
  }

  async all() {
    if (this.whole) return;
    this.whole = true;
    $("#how-note").textContent = "Looking what this machine has …";
    try { this.known = await get("api/choices?all=1", { run: "" }); } catch { this.whole = false; }
    $("#how-note").textContent = "";
    this.show();
  }

  drawer() {
    const name = this.form.elements.renderer.value;
    return this.known.drawers.find((one) => one.name === name) || this.known.drawers[0];
  }

  fill(name, options) {
    const field = this.form.elements[name], before = field.value;
    if (before && !options.some((option) => option.value === before)) options.push({ value: before, label: before });
    const key = JSON.stringify(options);
    if (field.dataset.shown === key) return;
    field.dataset.shown = key;
    field.replaceChildren(...options.map((option) => h("option", { value: option.value, disabled: option.disabled }, option.label)));
    field.value = before;
  }

  // Lists by what is chosen: a judge that cannot read the pictures says so and cannot be taken.
  show() {
    if (!this.known) return;
    const { drawers, lookers } = this.known;
    const lacking = (one) => (one.lacks ? `not here: ${one.lacks}` : one.about);
    this.fill("renderer", drawers.map((one, at) => ({ value: at ? one.name : "", label: one.label || `${one.name} (${lacking(one)})`, disabled: Boolean(one.lacks) && at > 0 })));
    const drawer = this.drawer(), family = drawer.name.split(":")[0];
    const reads = (one) => !one.only || one.only === family;
    this.fill("judge", lookers.map((one, at) => ({
      value: at ? one.name : "", label: `${one.name} (${reads(one) ? lacking(one) : "cannot read these pictures"})`, disabled: at > 0 && (Boolean(one.lacks) || !reads(one)),
    })));
    this.fill("size", drawer.sizes.length ? drawer.sizes.map((one) => ({ value: one.value, label: one.label })) : [{ value: "", label: "as it draws" }]);
    const nobody = drawer.label && lookers.find((one) => one.name === "none");  // a chat window is not asked to look
    const looker = lookers.find((one) => one.name === this.form.elements.judge.value) || nobody || lookers[0];
    $("#how-said").textContent = drawer.label || `${drawer.name}, ${dollars(drawer.price)}${drawer.price ? " a picture" : ""}`;
    if (this.whole) $("#how-note").textContent = looker && !reads(looker) ? `${looker.name} cannot read what ${drawer.name} draws: choose who looks.` : "";
    this.showLooks();
  }

  showLooks() {
    if (!this.known) return;
    const drawer = this.drawer(), now = this.form.elements.style.value.trim() || drawer.style;
    $("#looks").replaceChildren(...drawer.styles.map((look) => h("button", {
      type: "button", "aria-pressed": String(look.name === now), "data-look": look.name, onclick: () => {
        this.form.elements.style.value = look.name === drawer.style ? "" : look.name;
        this.showLooks();
        this.changed();
        $(`#looks [data-look="${CSS.escape(look.name)}"]`).focus();
      },
    }, look.sample ? h("img", { src: `api/style?renderer=${encodeURIComponent(drawer.name)}&style=${encodeURIComponent(look.name)}`, alt: "", loading: "lazy", width: "192", height: "128" }) : null, look.name)));
  }
}

// What was paid since the desk was opened, and what a person carried.
export function showSpent(spent) {
  const paid = spent && (spent.dollars > 0 || spent.calls > 0 || spent.limit !== null), told = [];
  if (paid) told.push(`Spent since the desk was opened: $${spent.dollars.toFixed(2)}${spent.limit === null ? "" : ` of $${spent.limit.toFixed(2)}`}, ${spent.calls} paid call${spent.calls === 1 ? "" : "s"}.`);
  if (spent?.by_hand) told.push(`${spent.by_hand} exchange${spent.by_hand === 1 ? "" : "s"} by hand.`);
  show($("#spent"), told.length > 0);
  $("#spent").textContent = told.join(" ");
}
