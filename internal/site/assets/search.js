// The search of the site: every word of a query begins a word of a part of a page. The index is
// loaded with the first key. Without scripts the page has no search, and the navigation.
(() => {
  const { up } = document.currentScript.dataset;
  const form = document.querySelector('form[role=search]');
  const input = document.getElementById('search');
  const list = document.getElementById('search-results');
  const count = document.getElementById('search-count');
  const most = 12;
  let loading;

  const load = () =>
    (loading ??= new Promise((done, failed) => {
      const script = document.createElement('script');
      script.src = up + 'search-index.js';
      script.onload = () => done(window.searchIndex);
      script.onerror = () => failed(new Error('the index of the search cannot be loaded'));
      document.head.append(script);
    }));

  const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}_-]+/gu) ?? [];

  // A word in a heading counts most, a whole word more than a beginning.
  const rank = (part, words) => {
    let sum = 0;
    for (const word of words) {
      const title = wordsOf(part.t);
      const at = ' ' + part.w;
      if (title.includes(word)) sum += 8;
      else if (title.some((w) => w.startsWith(word))) sum += 5;
      else if ((at + ' ').includes(` ${word} `)) sum += 2;
      else if (at.includes(' ' + word)) sum += 1;
      else return 0;
    }
    return sum;
  };

  const show = (parts, text) => {
    list.replaceChildren(
      ...parts.map((part) => {
        const item = document.createElement('li');
        const link = document.createElement('a');
        link.href = up + part.u;
        link.textContent = part.t;
        if (part.p !== part.t) {
          const page = document.createElement('span');
          page.textContent = part.p;
          link.append(page);
        }
        item.append(link);
        return item;
      }),
    );
    list.hidden = parts.length === 0;
    count.textContent = text;
  };

  const search = async () => {
    const words = wordsOf(input.value);
    if (words.length === 0) return show([], '');
    const index = await load();
    const hits = index
      .map((part) => [rank(part, words), part])
      .filter(([n]) => n > 0)
      .sort((a, b) => b[0] - a[0])
      .map(([, part]) => part);
    show(hits.slice(0, most), hits.length === 1 ? '1 result' : `${hits.length} results`);
  };

  form.hidden = false;
  input.addEventListener('input', () => search().catch((e) => show([], e.message)));
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    list.querySelector('a')?.click();
  });
  form.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape') return;
    input.value = '';
    show([], '');
    input.focus();
  });
  document.addEventListener('click', (e) => form.contains(e.target) || show([], ''));
})();
