// A page that an earlier yaya has served: the files that it has not loaded yet are gone.
// @ts-check

/** Whether yaya serves another page than this. */
async function replaced() {
  const r = await fetch('/', { credentials: 'omit', cache: 'no-cache' });
  return r.ok && !(await r.text()).includes(new URL(import.meta.url).pathname);
}

/** This page was just loaded again, and that has not helped: nodes behind one address may differ. */
function tried() {
  const [n] = performance.getEntriesByType('navigation');
  return (
    /** @type {PerformanceNavigationTiming} */ (n).type === 'reload' && performance.now() < 10_000
  );
}

/** A part that is loaded when it is used. The page is loaded again if that is what it takes.
 * @template T @param {Promise<T>} part @returns {Promise<T>} */
export const fresh = (part) =>
  part.catch(async (e) => {
    if (!tried() && (await replaced().catch(() => false))) {
      location.reload();
      return new Promise(() => {}); // the browser leaves this page
    }
    throw e;
  });
