// A page that an earlier yaya has served: the files that it has not loaded yet are gone.
// @ts-check

const KEY = 'yaya.left'; // the pages that this tab was loaded again for

/** This page, by its own file: names change with what is in them. */
const own = () => new URL(import.meta.url).pathname;

/** Whether yaya serves another page than this. */
async function replaced() {
  const r = await fetch('/', { credentials: 'omit', cache: 'no-cache' });
  return r.ok && !(await r.text()).includes(own());
}

/** Whether this page may be left for its successor: once, since nodes of different versions behind one address
 * would lead back to it. */
function leave() {
  try {
    const left = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    if (left.includes(own())) return false;
    sessionStorage.setItem(KEY, JSON.stringify([...left.slice(-20), own()]));
    return true;
  } catch {
    return false; // nowhere to keep it
  }
}

/** A view that is loaded when it is opened. The page is loaded again if that is what it takes.
 * @template T @param {Promise<T>} part @returns {Promise<T>} */
export const fresh = (part) =>
  part.catch(async (e) => {
    if ((await replaced().catch(() => false)) && leave()) {
      location.reload();
      return new Promise(() => {}); // the browser leaves this page
    }
    throw e;
  });
