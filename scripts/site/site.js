/* The search of the pages. Its words are loaded when it is first used. */
(() => {
  const root = document.currentScript.dataset.root;
  const query = document.querySelector("#query");
  const found = document.querySelector("#found");
  const pages = document.querySelector("nav details");
  const MOST = 20;
  let loading = null;

  if (window.matchMedia("(max-width: 55em)").matches) pages.open = false;

  const load = () =>
    (loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}/search.js`;
      script.addEventListener("load", () => resolve(window.SECTIONS));
      script.addEventListener("error", reject);
      document.head.append(script);
    }));

  const rank = ({ page, title, text }, words) => {
    let sum = 0;
    const fields = [page.toLowerCase(), title.toLowerCase(), text.toLowerCase()];
    for (const word of words) {
      const weight = fields[1].includes(word)
        ? 8
        : fields[0].includes(word)
          ? 4
          : fields[2].includes(word)
            ? 1
            : 0;
      if (weight === 0) return 0;
      sum += weight;
    }
    return sum;
  };

  const excerpt = (text, word) => {
    const at = Math.max(0, text.toLowerCase().indexOf(word) - 60);
    return `${at > 0 ? "…" : ""}${text.slice(at, at + 160).trim()}…`;
  };

  const show = async () => {
    const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.hidden = words.length === 0;
    if (words.length === 0) return;
    const sections = await load();
    const best = sections
      .map((section) => ({ section, points: rank(section, words) }))
      .filter(({ points }) => points > 0)
      .sort((a, b) => b.points - a.points)
      .slice(0, MOST);
    const list = document.createElement("ol");
    for (const { section } of best) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `${root}/${section.url}`;
      link.textContent = section.page === section.title ? section.page : `${section.page}: ${section.title}`;
      const text = document.createElement("p");
      text.textContent = excerpt(section.text, words[0]);
      item.append(link, text);
      list.append(item);
    }
    const none = document.createElement("p");
    none.textContent = "Nothing was found.";
    found.replaceChildren(best.length === 0 ? none : list);
  };

  query.addEventListener("input", show);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== query) {
      event.preventDefault();
      query.focus();
    }
    if (event.key === "Escape" && document.activeElement === query) {
      query.value = "";
      void show();
    }
  });
})();
