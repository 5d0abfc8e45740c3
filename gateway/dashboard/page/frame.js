// The frame around the views: the navigation, the notices, and the current view.
// @ts-check
import { useEffect, useState } from './vendor/hooks.js';
import { href, may, page, route, useLoaded } from './state.js';
import { plain } from './text.js';
import { html, Problem } from './ui.js';

/** The views: path, title, required scope, module. */
const VIEWS = [
  { at: '', title: 'Overview', needs: 'sessions:read', load: () => import('./overview.js') },
  { at: 'chat', title: 'Sessions', needs: 'sessions:read', load: () => import('./sessions.js') },
  {
    at: 'approvals',
    title: 'Approvals',
    needs: 'sessions:read',
    load: () => import('./approvals.js'),
  },
  { at: 'servers', title: 'MCP servers', needs: 'config:read', load: () => import('./servers.js') },
  { at: 'tools', title: 'Tools', needs: 'config:read', load: () => import('./tools.js') },
  {
    at: 'quarantine',
    title: 'Quarantine',
    needs: 'config:read',
    load: () => import('./quarantine.js'),
  },
  { at: 'sandbox', title: 'Sandbox', needs: 'config:read', load: () => import('./sandbox.js') },
  { at: 'devices', title: 'Devices', needs: 'devices:read', load: () => import('./devices.js') },
  {
    at: 'providers',
    title: 'Providers',
    needs: 'config:read',
    load: () => import('./providers.js'),
  },
  { at: 'plugins', title: 'Plugins', needs: 'config:read', load: () => import('./plugins.js') },
  { at: 'config', title: 'Configuration', needs: 'config:read', load: () => import('./config.js') },
  { at: 'agents', title: 'Agents', needs: 'agents:read', load: () => import('./agents.js') },
  { at: 'cluster', title: 'Cluster', needs: 'agents:read', load: () => import('./cluster.js') },
  { at: 'audit', title: 'Audit', needs: 'audit:read', load: () => import('./audit.js') },
  { at: 'metrics', title: 'Metrics', needs: 'metrics:read', load: () => import('./metrics.js') },
  { at: 'start', title: 'Setup', needs: 'config:read', load: () => import('./start.js') },
];

/** @type {Map<string, import('./vendor/preact.js').ComponentType<{rest: string[]}>>} */
const loaded = new Map();

/** Loads a view's module and renders it. @param {{at: string, rest: string[]}} p */
function Lazy({ at, rest }) {
  const [error, setError] = useState(/** @type {unknown} */ (null));
  const [, tick] = useState(0);
  const v = VIEWS.find((x) => x.at === at);
  useEffect(() => {
    setError(null);
    if (v && !loaded.has(at)) {
      v.load().then((m) => {
        loaded.set(at, m.default);
        tick((n) => n + 1);
      }, setError);
    }
  }, [at]);
  if (!v) return html`<h1>Page not found</h1><p><a href="#/">Go to the overview</a></p>`;
  if (!may(v.needs))
    return html`
      <h1>${v.title}</h1>
      <p class="empty">This device may not see that: it needs the scope ${v.needs}.</p>
    `;
  const View = loaded.get(at);
  return View ? html`<${View} key=${at} rest=${rest} />` : html`<${Problem} error=${error} />`;
}

/** How many things wait for somebody. @param {{n: number | undefined}} p */
function Count({ n }) {
  return n ? html` <span class="count" aria-label=${`${n} waiting`}>${n}</span>` : null;
}

function Asks() {
  const asks = useLoaded('/api/approvals', ['approvals']).data;
  return html`<${Count} n=${asks?.length} />`;
}

function Quarantined() {
  const servers = useLoaded('/api/mcp/quarantine', ['quarantine']).data;
  const of = (/** @type {Admin<'Waiting'>} */ w) => w.tools.length + (w.instructions ? 1 : 0);
  return html`<${Count} n=${servers?.reduce((n, w) => n + Math.max(1, of(w)), 0)} />`;
}

/** Shows files with mistakes in every view: their changes are not in force. */
function Notices() {
  const notices = useLoaded(may('config:read') ? '/api/notices' : null, ['config']);
  return (
    notices.data?.map(
      (/** @type {Admin<'Notice'>} */ n) =>
        html`<p class="notice" role="alert">
          <b>${plain(n.file)}</b> has a mistake and was not reloaded; its previous content stays in
          force: ${plain(n.error)}
        </p>`,
    ) ?? null
  );
}

export function Frame() {
  page.me.use();
  const link = page.link.use();
  const [at = '', ...rest] = route.use();
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [at]);
  return html`
    <a
      class="skip"
      href="#main"
      onClick=${(/** @type {Event} */ e) => {
        e.preventDefault();
        document.getElementById('main')?.focus();
      }}>
      Skip to the content
    </a>
    <div class="frame">
      <header class="top">
        <a class="brand" href="#/"><img src="/ui/icon.svg" alt="" width="24" height="24" />yaya</a>
        <button
          class="menu"
          aria-expanded=${open}
          aria-controls="nav"
          onClick=${() => setOpen(!open)}>
          Menu
        </button>
      </header>
      <nav id="nav" class=${open ? 'open' : ''} aria-label="Views">
        ${VIEWS.filter((v) => may(v.needs)).map(
          (v) => html`<a href=${href(v.at)} aria-current=${v.at === at ? 'page' : undefined}>
            ${v.title}
            ${v.at === 'approvals' && html`<${Asks} />`}
            ${v.at === 'quarantine' && html`<${Quarantined} />`}
          </a>`,
        )}
        <p class="link" role="status">
          ${link.state === 'open'
            ? html`<span class="dot good"></span> live`
            : link.state === 'ended'
              ? html`<span class="dot bad"></span> ${link.why || 'ended'}`
              : html`<span class="dot busy"></span> connecting …`}
        </p>
      </nav>
      <main id="main" tabindex="-1"><${Notices} /><${Lazy} at=${at} rest=${rest} /></main>
    </div>
  `;
}
