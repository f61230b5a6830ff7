"use strict";
{
  const box = document.getElementById("search");
  const count = document.getElementById("count");
  const tables = Array.from(document.querySelectorAll("details.entry"), (entry) => [entry, entry.dataset.words.toLowerCase()]);
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [entry, text] of tables) {
      entry.hidden = !words.every((word) => text.includes(word));
      shown += entry.hidden ? 0 : 1;
    }
    count.textContent = words.length ? `${shown} of ${tables.length}` : `${tables.length}`;
  };
  document.getElementById("finder").hidden = false;
  box.addEventListener("input", filter);
  filter();
}
