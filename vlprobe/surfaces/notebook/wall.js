// The wall of cases as a notebook widget. A click selects a case; a tag applies to all selected cases.
// Traits: wall (the component's data), sheet, selected (ids), tags (lists by id).

export default {
  render({ model, el }) {
    const host = make("div");
    const root = host.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [new CSSStyleSheet()];
    root.adoptedStyleSheets[0].replaceSync(model.get("sheet"));
    const field = Object.assign(make("input"), { type: "text", maxLength: 80, placeholder: "Tag the selected cases", ariaLabel: "Tag" });
    const status = make("span");
    el.append(host, field, " ", status);
    const set = (name, value) => {
      model.set(name, value);
      model.save_changes();
    };
    const draw = () => {
      const [data, selected, tags] = ["wall", "selected", "tags"].map((name) => model.get(name));
      const cards = data.cards.map((card) => ({ ...card, notes: [...card.notes, ...(tags[card.id] || [])] }));
      const press = (name, id) => set("selected", selected.includes(id) ? selected.filter((each) => each !== id) : [...selected, id]);
      wall({ data: { ...data, cards }, parentElement: root, setTriggerValue: press });
      for (const button of root.querySelectorAll("button.card")) button.ariaPressed = String(selected.includes(button.dataset.id));
      status.textContent = `${selected.length} of ${cards.length} selected`;
    };
    field.addEventListener("keydown", (event) => {
      const tag = field.value.trim();
      if (event.key !== "Enter" || !tag) return;
      const tags = model.get("tags");
      set("tags", { ...tags, ...Object.fromEntries(model.get("selected").map((id) => [id, [...new Set([...(tags[id] || []), tag])]])) });
      field.value = "";
    });
    model.on("change:selected", draw);
    model.on("change:tags", draw);
    draw();
  },
};
