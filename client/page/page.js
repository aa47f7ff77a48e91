// Sends the chosen file of texts before the form that looks at them; without this script its path is typed.
const form = document.getElementById("look");
const file = document.getElementById("file");
const said = document.getElementById("said");

// A file of one's own takes the place of the release that was chosen among those sent.
function unsent() {
  if (form.elements.sent) form.elements.sent.value = "";
}

file.closest("[hidden]").hidden = false;
form.elements.texts.addEventListener("input", unsent);
file.addEventListener("change", () => {
  unsent();
  form.elements.texts.required = !file.files.length && !form.elements.sent;
});
form.addEventListener("submit", async (event) => {
  if (!file.files.length) return;
  event.preventDefault();
  said.textContent = said.dataset.sending;
  const headers = { "Content-Type": "application/octet-stream", "X-Form-Token": form.elements.form_token.value };
  try {
    const response = await fetch("receive", { method: "POST", body: file.files[0], headers });
    const text = await response.text();
    if (!response.ok) throw new Error(text.startsWith("<") ? said.dataset.failed : text);
    form.elements.texts.value = text;
    form.submit();
  } catch (error) {
    said.textContent = error.message;
  }
});
