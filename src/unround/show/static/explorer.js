// What the explorer does in the browser. Everything works without it; with it, searching suggests, tables fold, and the
// answer to a typed system redraws. No text from the server is ever put into a page as markup, but for our own pages.
"use strict";

// -- searching an area: suggestions under the box, to be chosen by mouse or keyboard -----------------------------------
function suggest(input) {
  const list = document.createElement("ul");
  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Areas and characteristics");
  list.hidden = true;
  input.after(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");
  let chosen = -1;
  let asked = 0;
  let timer = 0;

  function close() {
    list.hidden = true;
    chosen = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(at) {
    const options = list.querySelectorAll("[role=option]");
    if (!options.length) return;
    chosen = (at + options.length) % options.length;
    options.forEach((option, k) => option.setAttribute("aria-selected", String(k === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[chosen].id);
  }

  // One line of the list; whatever it says is text.
  function offer(address, name, rest) {
    const option = document.createElement("li");
    option.id = `suggestion${list.querySelectorAll("[role=option]").length}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    option.dataset.address = address;
    const named = document.createElement("span");
    named.textContent = name;
    const more = document.createElement("small");
    more.textContent = rest.filter(Boolean).join(" · ");
    option.append(named, more);
    list.append(option);
  }

  function note(text) {
    const line = document.createElement("li");
    line.className = "note";
    line.setAttribute("role", "show");
    line.textContent = text;
    list.append(line);
  }

  const many = (number) => (number ? `${number.toLocaleString("en")} found` : "");

  function show(found) {
    const before = list.querySelectorAll("[role=option]")[chosen]?.dataset.address; // a late answer must not lose the choice
    list.replaceChildren();
    const lines = found.characteristics.filter((line) => line.findings);
    for (const area of found.areas) offer(area.address, area.name, [area.within || area.level, many(area.findings)]);
    if (lines.length) note("Characteristics");
    for (const line of lines) offer(line.address, line.name, [line.table, many(line.findings)]);
    if (!found.total && !lines.length) note("Nothing fits");
    else if (found.total > found.areas.length) note(`${found.total.toLocaleString("en")} areas in all; Enter lists them`);
    chosen = -1;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    const again = [...list.querySelectorAll("[role=option]")].findIndex((option) => option.dataset.address === before);
    if (again >= 0) choose(again);
  }

  async function ask() {
    const query = input.value.trim();
    const turn = ++asked;
    if (!query) return close();
    const answer = await fetch(`/areas.json?few=1&q=${encodeURIComponent(query)}`);
    if (!answer.ok) return;
    const found = await answer.json();
    if (turn === asked && document.activeElement === input) show(found); // an older answer may come later
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 60);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (list.hidden) ask();
      else choose(event.key === "ArrowDown" ? chosen + 1 : chosen < 0 ? -1 : chosen - 1);
      event.preventDefault();
    } else if (event.key === "Escape" && !list.hidden) {
      close();
      event.preventDefault();
    } else if (event.key === "Enter" && chosen >= 0 && !list.hidden) {
      event.preventDefault();
      location.assign(list.querySelectorAll("[role=option]")[chosen].dataset.address);
    }
  });
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // keeps the focus in the box
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) location.assign(option.dataset.address);
  });
  input.addEventListener("blur", close);
}

// -- tables whose lines fold: what is open is remembered for as long as the tab is -------------------------------------
const OPEN_TO = 1; // levels that are open at first; deeper ones are if they hold a finding

function fold(table) {
  const rows = [...table.tBodies[0].rows];
  const closed = new Set(remembered(table) ?? rows.filter((row) => level(row) >= OPEN_TO && row.dataset.parts === "0").map((row) => row.id));
  const byId = new Map(rows.map((row) => [row.id, row]));

  function level(row) {
    return Number(/level(\d)/.exec(row.cells[0].className)[1]);
  }

  function draw() {
    const hidden = new Set();
    for (const row of rows) {
      const above = row.dataset.under;
      row.hidden = above !== undefined && byId.has(above) && (hidden.has(above) || closed.has(above));
      if (row.hidden) hidden.add(row.id);
      const button = row.cells[0].querySelector("button");
      if (button) button.setAttribute("aria-expanded", String(!closed.has(row.id)));
    }
    try {
      sessionStorage.setItem(memory(table), JSON.stringify([...closed]));
    } catch {
      // Without storage nothing is remembered, and all else works.
    }
  }

  for (const row of rows) {
    if (!("parts" in row.dataset)) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    const label = row.cells[0].querySelector(".label");
    button.textContent = label.textContent;
    label.replaceWith(button);
    button.addEventListener("click", () => {
      if (!closed.delete(row.id)) closed.add(row.id);
      draw();
    });
  }
  draw();
  return {
    all() {
      closed.clear();
      draw();
    },
    none() {
      rows.filter((row) => "parts" in row.dataset).forEach((row) => closed.add(row.id));
      draw();
    },
  };
}

function memory(table) {
  return `unround closed ${location.pathname} ${table.dataset.tree}`;
}

function remembered(table) {
  try {
    return JSON.parse(sessionStorage.getItem(memory(table)));
  } catch {
    return null;
  }
}

// -- a typed system: the answer is asked for while one types, and the address follows -----------------------------------
function live(form) {
  let timer = 0;
  let asked = null;

  async function ask() {
    const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
    asked?.abort();
    asked = new AbortController();
    const answer = document.getElementById("answer");
    answer.setAttribute("aria-busy", "true");
    try {
      const page = await fetch(address, { signal: asked.signal });
      if (!page.ok && page.status !== 503) throw new Error(`status ${page.status}`);
      const found = new DOMParser().parseFromString(await page.text(), "text/html");
      // Where the machine is busy, the page has no answer, but says so.
      answer.replaceChildren(...(found.getElementById("answer") ?? found.querySelector("main")).childNodes);
      history.replaceState(null, "", address);
      answer.removeAttribute("aria-busy");
    } catch (problem) {
      if (problem.name === "AbortError") return; // a newer text is being asked for
      answer.textContent = "The explorer does not answer: is it still running?";
      answer.removeAttribute("aria-busy");
    }
  }

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 300);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    ask();
  });
}

suggest(document.getElementById("search"));
const trees = [...document.querySelectorAll("table.tree")].map(fold);
const tools = document.querySelector(".tools");
if (tools && document.querySelector("tr[data-parts]")) {
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    const how = event.target.dataset.expand;
    if (how) trees.forEach((tree) => tree[how]());
  });
}
document.querySelectorAll("form[data-live]").forEach(live);

// -- taking things along: a sentence to the clipboard, a picture into a file --------------------------------------------
const DRAWN = ["fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size",
  "font-weight", "color", "opacity"];

// The picture as it stands on the page: colours come from the stylesheet, so each part is given its own.
function picture(svg) {
  const copy = svg.cloneNode(true);
  const parts = copy.querySelectorAll("*");
  svg.querySelectorAll("*").forEach((part, k) => {
    const shown = getComputedStyle(part);
    DRAWN.forEach((name) => parts[k].style.setProperty(name, shown.getPropertyValue(name)));
  });
  const box = svg.viewBox.baseVal;
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", box.width);
  ground.setAttribute("height", box.height);
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  return new XMLSerializer().serializeToString(copy);
}

function takeAlong() {
  document.documentElement.classList.add("scripted");
  document.addEventListener("click", async (event) => {
    const tool = event.target.closest("[data-copy], [data-save]");
    if (!tool) return;
    if ("copy" in tool.dataset) {
      const said = tool.previousElementSibling;
      getSelection().selectAllChildren(said);
      if (navigator.clipboard) await navigator.clipboard.writeText(said.textContent);
      tool.textContent = "Copied";
      return;
    }
    const svg = tool.closest("figure, section, div").querySelector("svg.chart:not(.strip):not(.spark)");
    if (!svg) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([picture(svg)], { type: "image/svg+xml" }));
    link.download = `${tool.dataset.save.replace(/[^\p{L}\p{N}]+/gu, "-")}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
takeAlong();
