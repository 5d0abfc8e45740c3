// Removes secrets from the page's address, which is shown, remembered and shared.
// @ts-check

let code =
  /^#code=([A-Za-z0-9-]{1,40})(?:&key=[A-Za-z0-9:]{1,80})?$/.exec(location.hash)?.[1] ?? '';

/** Returns the code from a QR code's link (the part after #), only once. */
export function takeCode() {
  const c = code;
  code = '';
  return c;
}

// The places of the page are #/…, and no place contains an =. Anything else after # or ? is
// removed at once, before the rest of the page loads.
function clean() {
  const place = location.hash.includes('=') ? '' : location.hash;
  if (place !== location.hash || location.search)
    history.replaceState(null, '', location.pathname + place);
}
clean();
addEventListener('hashchange', clean); // an address that is pasted into an open page
