// The page's address keeps no secret: it is shown, remembered and shared.
// @ts-check

let code = /^#code=([A-Za-z0-9-]{1,40})(?:&key=[A-Za-z0-9:]{1,80})?$/.exec(location.hash)?.[1] ?? '';

/** The code of a QR code, which stands behind #; only once. */
export function takeCode() {
  const c = code;
  code = '';
  return c;
}

// The places of the page are #/…, and no place has an = in it. Whatever else is behind #
// or ? is taken out at once, before the rest of the page is there (UI-05, R8).
function clean() {
  const place = location.hash.includes('=') ? '' : location.hash;
  if (place !== location.hash || location.search) history.replaceState(null, '', location.pathname + place);
}
clean();
addEventListener('hashchange', clean); // an address that is pasted over a page that is open
