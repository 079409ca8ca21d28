// A list of findings: facets that count anew at every choice, and the argument of a finding in a drawer beside it. Every
// state has an address. Without this script rows lead to pages of their own, and facets have a button.
document.documentElement.classList.add("js");

// Return a page of ours, parsed; null where it does not come.
async function pageAt(address, signal) {
  const answer = await fetch(address, { signal });
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

const typing = (target) => target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

// -- the drawer: the page of one count, without what is around it -------------------------------------------------------
function drawerOf(work) {
  const drawer = work.querySelector("#drawer");
  const inside = drawer.querySelector(".inside");
  const close = drawer.querySelector(".close");
  let asked = null;
  close.hidden = false;

  async function open(address) {
    drawer.hidden = false;
    work.classList.add("opened");
    drawer.querySelector(".whole").href = address;
    drawer.setAttribute("aria-busy", "true");
    asked?.abort();
    asked = new AbortController();
    try {
      const page = await pageAt(address, asked.signal);
      const main = page?.getElementById("main");
      main?.querySelectorAll(".crumbs, [data-not-beside]").forEach((part) => part.remove());
      const title = main?.querySelector("h1");
      if (title) {
        const smaller = document.createElement("h2");
        smaller.append(...title.childNodes);
        title.replaceWith(smaller);
      }
      if (main) inside.replaceChildren(...main.childNodes);
      else inside.textContent = "This argument cannot be shown; its own page says why.";
      drawer.scrollTop = 0;
    } catch (problem) {
      if (problem.name === "AbortError") return; // another one is being asked for
      inside.textContent = "The explorer does not answer: is it still running?";
    }
    drawer.removeAttribute("aria-busy");
  }

  function shut() {
    asked?.abort();
    drawer.hidden = true;
    work.classList.remove("opened");
    inside.replaceChildren();
  }

  return { open, shut, close, isOpen: () => !drawer.hidden, element: drawer };
}

// -- the rows: one is where the reader is --------------------------------------------------------------------------------
function listing(work) {
  const drawer = drawerOf(work);
  const rows = () => [...work.querySelectorAll(".row")].filter((row) => row.offsetParent !== null);
  const current = () => work.querySelector(".row.here");

  function stand(row) {
    for (const other of work.querySelectorAll(".row.here")) {
      other.classList.remove("here");
      other.querySelector("a").removeAttribute("aria-current");
    }
    if (!row) return;
    row.classList.add("here");
    row.querySelector("a").setAttribute("aria-current", "true");
  }

  function remember(address, push) {
    const now = new URL(location.href);
    if (address) now.searchParams.set("open", address);
    else now.searchParams.delete("open");
    if (now.href !== location.href) history[push ? "pushState" : "replaceState"](null, "", now);
  }

  function show(row) {
    stand(row);
    const first = !drawer.isOpen();
    remember(row.dataset.address, first);
    drawer.open(row.dataset.address);
  }

  function shut() {
    if (!drawer.isOpen()) return false;
    drawer.shut();
    remember("", false);
    (current()?.querySelector("a") ?? work).focus();
    return true;
  }

  function step(by) {
    const all = rows();
    const at = all.indexOf(current());
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    if (!next) {
      work.querySelector(by > 0 ? ".pager a[rel=next]" : ".pager a[rel=prev]")?.click();
      return;
    }
    stand(next);
    next.querySelector("a").focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    if (drawer.isOpen()) show(next);
  }

  // What the address says is open.
  function follow() {
    const address = new URL(location.href).searchParams.get("open");
    const row = address && [...work.querySelectorAll(".row")].find((one) => one.dataset.address === address);
    stand(row || null);
    if (address) drawer.open(address);
    else if (drawer.isOpen()) drawer.shut();
  }

  work.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
    event.preventDefault();
    show(row);
  });
  drawer.close.addEventListener("click", shut);
  document.addEventListener("keydown", (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") {
      if (!typing(event.target) && shut()) event.preventDefault();
      return;
    }
    if (typing(event.target)) return;
    if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    else if (event.key === "Enter" && current() && (event.target === document.body || event.target === work)) show(current());
    else return;
    event.preventDefault();
  });
  const keys = work.querySelector(".keyboard");
  if (keys) keys.hidden = false;
  follow();
  return { follow };
}

// -- facets: every choice asks for the list again, and the numbers beside the other choices with it ----------------------
function faceted(work, list) {
  let asked = null;
  let timer = 0;
  let shown = listAddress();

  function listAddress() {
    const now = new URL(location.href);
    now.searchParams.delete("open");
    return now.pathname + now.search;
  }

  async function load(address) {
    asked?.abort();
    asked = new AbortController();
    const found = work.querySelector("#found");
    found.setAttribute("aria-busy", "true");
    try {
      const page = await pageAt(address, asked.signal);
      if (!page?.getElementById("found")) return location.assign(address); // which says what is wrong
      const focused = document.activeElement;
      const kept = focused?.name && work.contains(focused) ? [focused.name, focused.value, focused.selectionStart] : null;
      const open = new Set([...work.querySelectorAll("details[id][open]")].map((one) => one.id));
      const folded = !work.querySelector("#facets > details").open;
      found.replaceChildren(...page.getElementById("found").childNodes);
      work.querySelector("#facets").replaceChildren(...page.getElementById("facets").childNodes);
      work.querySelector("#facets > details").open = !folded;
      for (const one of work.querySelectorAll("details[id]")) one.open = open.has(one.id);
      const keys = work.querySelector(".keyboard");
      if (keys) keys.hidden = false;
      if (kept) {
        const all = [...work.querySelectorAll("input, select")].filter((one) => one.name === kept[0]);
        const again = all.find((one) => one.type === "search" || one.tagName === "SELECT" || one.value === kept[1]);
        again?.focus({ preventScroll: true });
        if (again?.type === "search") {
          again.value = kept[1]; // what was typed while the list was on its way
          again.setSelectionRange(kept[2], kept[2]);
        }
      }
      shown = address;
      document.title = page.title;
      list.follow();
    } catch (problem) {
      if (problem.name !== "AbortError") location.assign(address);
      return;
    }
    found.removeAttribute("aria-busy");
  }

  function choose(form) {
    const pairs = [...new FormData(form)].filter(([, value]) => value !== "");
    const address = `${form.getAttribute("action")}?${new URLSearchParams(pairs)}`;
    history.pushState(null, "", address);
    load(address);
  }

  work.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-facets], form[data-order]");
    if (form && event.target.type !== "search") choose(form);
  });
  work.addEventListener("input", (event) => {
    if (event.target.type !== "search") return;
    clearTimeout(timer);
    timer = setTimeout(() => choose(work.querySelector("form[data-facets]")), 250); // as it is then: lists come with a new one
  });
  work.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    choose(event.target);
  });
  window.addEventListener("popstate", () => {
    if (listAddress() === shown) list.follow();
    else load(listAddress());
  });
  if (matchMedia("(max-width: 51.99rem)").matches) work.querySelector("#facets > details").open = false;
}

const work = document.getElementById("work");
if (work) {
  const list = listing(work);
  if (work.querySelector("form[data-facets]")) faceted(work, list);
  else window.addEventListener("popstate", list.follow);
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
  event.preventDefault();
  document.getElementById("search").focus();
});
