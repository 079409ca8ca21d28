// A map: pointing at an area names it, and selecting it leads to it. Which area is where, the server says: the page holds
// nothing but the drawing.
function mapOf(place) {
  const picture = place.querySelector("svg.choropleth");
  const said = place.querySelector(".pointed");
  let timer = 0;
  let asked = null;

  function address(event) {
    const box = picture.getBoundingClientRect();
    const [, , wide, tall] = picture.getAttribute("viewBox").split(" ").map(Number);
    const scale = Math.min(box.width / wide, box.height / tall); // the drawing is in the middle of its box
    const x = (event.clientX - box.left - (box.width - wide * scale) / 2) / scale;
    const y = (event.clientY - box.top - (box.height - tall * scale) / 2) / scale;
    const { left, top, scale: grid } = picture.dataset;
    const query = new URLSearchParams({ x: Number(left) + x * Number(grid), y: Number(top) + y * Number(grid) });
    for (const name of ["level", "place"]) if (place.dataset[name]) query.set(name, place.dataset[name]);
    return `/map/at.json?${query}`;
  }

  async function ask(event) {
    asked?.abort();
    asked = new AbortController();
    try {
      const answer = await fetch(address(event), { signal: asked.signal });
      return answer.ok ? await answer.json() : null;
    } catch {
      return null; // a newer question, or nobody there
    }
  }

  picture.addEventListener("click", async (event) => {
    clearTimeout(timer);
    const area = await ask(event);
    if (area) location.assign(area.address);
  });
  if (!said) return;
  picture.addEventListener("pointermove", (event) => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const area = await ask(event);
      said.hidden = !area;
      if (area) said.textContent = `${area.name}${area.within ? `, ${area.within}` : ""}: ${area.findings.toLocaleString("en")} findings, ${area.small.toLocaleString("en")} of them about counts of one or two`;
    }, 60);
  });
}

document.querySelectorAll("[data-map]").forEach(mapOf);
document.querySelectorAll("form[data-at-once]").forEach((form) => {
  form.querySelector("button").hidden = true;
  form.addEventListener("change", () => form.requestSubmit());
});
