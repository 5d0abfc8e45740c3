// A QR code, drawn with the browser's own elements.
// @ts-check
import { html } from './ui.js';

/** @param {{rows: string[], label: string}} p rows have a 1 for each dark square */
export function QR({ rows, label }) {
  const n = rows.length;
  const path = rows
    .flatMap((r, y) => [...r].map((c, x) => (c === '1' ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return html`<svg class="qr" role="img" aria-label=${label} viewBox=${`0 0 ${n} ${n}`}>
    <rect width=${n} height=${n} fill="#fff" />
    <path d=${path} fill="#000" />
  </svg>`;
}
