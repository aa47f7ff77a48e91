// Says the figures of the draft while one types; without this script the button says them, and more.
const form = document.getElementById("draft");
const figures = document.getElementById("figures");
let timer;
let asked = 0;

async function ask() {
  const mine = ++asked;
  stale(true);
  const body = new URLSearchParams(new FormData(form));
  const response = await fetch("figures", { method: "POST", body });
  const html = await response.text();
  if (mine !== asked || response.status !== 200) return;
  figures.innerHTML = html; // of this page's own templates
  stale(false);
}

// Marks the figures as those of an earlier draft, until new ones are there.
function stale(are) {
  figures.setAttribute("aria-busy", String(are));
  document.getElementById("stale").hidden = !are;
}

function soon() {
  stale(true);
  clearTimeout(timer);
  timer = setTimeout(() => ask().catch(() => {}), 600);
}

document.getElementById("live").hidden = false;
form.addEventListener("input", soon);
soon();
