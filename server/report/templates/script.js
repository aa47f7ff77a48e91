"use strict";
(() => {
  const element = (id) => document.getElementById(id);

  const labelChoice = element("map-label");
  if (labelChoice) {
    labelChoice.addEventListener("input", () => {
      for (const cloud of document.querySelectorAll("#plot-map [data-label]")) {
        cloud.toggleAttribute("hidden", labelChoice.value !== "" && cloud.dataset.label !== labelChoice.value);
      }
    });
    labelChoice.parentElement.hidden = false;
  }

  const dataElement = element("samples-data");
  if (!dataElement) return;
  const data = JSON.parse(dataElement.textContent);
  const lower = data.rows.map((row) => row[0].toLowerCase());
  const filters = ["label", "model", "round"].map(element);
  const size = 20, long = data.long;
  let matches = [], page = 0;

  const add = (parent, tag, text) => {
    const child = parent.appendChild(document.createElement(tag));
    if (text !== undefined) child.textContent = text;
    return child;
  };
  const card = ([text, label, model, round]) => {
    const item = document.createElement("li");
    add(item, "blockquote", text.length > long ? `${text.slice(0, long)}…` : text);
    if (text.length > long) {
      const rest = add(item, "details");
      add(rest, "summary", `All ${text.length.toLocaleString("en")} characters`);
      add(rest, "blockquote", text);
    }
    const by = `${data.labelled ? `${data.labels[label]} · ` : ""}${data.models[model]} · round ${data.rounds[round]}`;
    add(item, "p", by).className = "by";
    return item;
  };
  const show = () => {
    const pages = Math.max(1, Math.ceil(matches.length / size));
    const cards = matches.slice(page * size, (page + 1) * size).map((at) => card(data.rows[at]));
    element("found").replaceChildren(...cards);
    const [count, total] = [matches, data.rows].map((rows) => rows.length.toLocaleString("en"));
    element("state").textContent = `${count} of ${total} texts, page ${page + 1} of ${pages}`;
    element("earlier").disabled = page === 0;
    element("later").disabled = page + 1 >= pages;
  };
  const search = () => {
    const words = element("words").value.trim().toLowerCase();
    if (filters[0].value === "" && (words !== "" || filters[1].value !== "" || filters[2].value !== "")) {
      filters[0].value = "all";
    }
    const selection = filters.map((filter) => (["", "all"].includes(filter.value) ? null : Number(filter.value)));
    const examples = filters[0].value === "";
    element("examples").hidden = !examples;
    element("results").hidden = examples;
    if (examples) {
      element("state").textContent = `${data.few} Search or choose to read all texts.`;
      return;
    }
    matches = [];
    for (let at = 0; at < lower.length; at += 1) {
      const fits = selection.every((place, part) => place === null || data.rows[at][part + 1] === place);
      if (fits && lower[at].includes(words)) matches.push(at);
    }
    page = 0;
    show();
  };
  const turn = (by) => { page += by; show(); element("controls").scrollIntoView(); };
  for (const control of [element("words"), ...filters]) control.addEventListener("input", search);
  element("earlier").addEventListener("click", () => turn(-1));
  element("later").addEventListener("click", () => turn(1));
  element("controls").hidden = false;
  search();
})();
