// Filters the question table. Without scripts every question is shown and the filter stays hidden.
(() => {
  const filter = document.querySelector("fieldset.filter");
  if (!filter) return;
  filter.hidden = false;
  const rows = [...document.querySelectorAll("#asked > .scroll tbody tr")];
  const status = filter.querySelector("output");
  filter.addEventListener("change", (event) => {
    const wanted = event.target.value;
    let shown = 0;
    for (const row of rows) {
      row.hidden = wanted !== "" && row.dataset.flag !== wanted;
      if (!row.hidden) shown += 1;
    }
    status.textContent = `${shown} of ${rows.length} questions shown`;
  });
})();
