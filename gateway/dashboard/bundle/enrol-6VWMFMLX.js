import{I as o,X as $,a as C,ba as b,ca as v,da as w,e as I,f as q,g as F,h as n,j as h,l as f,u as c}from"./chunk-DX5UZMM6.js";import{a as A,h as e,i as T}from"./chunk-7KQRHSI2.js";function L(){let t=navigator.userAgent,l=/Firefox/.test(t)?"Firefox":/Edg/.test(t)?"Edge":/Chrom/.test(t)?"Chrome":/Safari/.test(t)?"Safari":e("Browser"),s=/Android/.test(t)?"Android":/iPhone|iPad/.test(t)?"iOS":/Mac/.test(t)?"macOS":/Win/.test(t)?"Windows":"Linux";return e("{browser} on {os}",{browser:l,os:s})}var M=2e3;function N({device:t,admitted:l,out:s}){let[d,P]=n(A),[y,W]=n(t?.label??L()),[i,u]=n(t&&!s?t:null),[g,D]=n(""),[k,p]=n(null),E=f({request:""}),X=f(t);h(()=>{document.title="yaya"},[]),h(()=>{if(!i)return;let r=0,m=!1,x=async()=>{try{let a=await F(i,E.current);if(m)return;if(a)return void await l(i,a);D(E.current.request),p(null)}catch(a){if(m)return;if(p(a),a instanceof C&&a.status>=400&&a.status<500&&a.status!==429)return void u(null)}r=window.setTimeout(x,M)};return x(),()=>{m=!0,clearTimeout(r)}},[i]);let S=async()=>X.current??=await I(y);return!globalThis.isSecureContext||!crypto.subtle?o`<main class="alone">
      <h1>${e("This page needs HTTPS")}</h1>
      <p>
        ${e("On another machine, a browser proves its identity with a key, and browsers support such keys only on secure pages. Start yaya with --acme --host NAME, with --tls-self-signed in a home network, with --tls-cert and --tls-key, or behind a proxy that serves TLS (--behind-proxy --host NAME).")}
      </p>
    </main>`:i?o`<main class="alone" aria-live="polite">
      <h1>${e("Waiting for approval")}</h1>
      <p>
        ${e("Somebody with the right to do so has to approve this browser: under Devices on the page, or with")}
      </p>
      ${g&&o`<pre tabindex="0">yaya device approve ${c(g)}</pre>`}
      <p class="muted">
        ${T("Its name is {name}, and its id is {id}.",{name:o`<b>${c(i.label)}</b>`,id:o`<code>${c(i.id)}</code>`})}
      </p>
      <${$} error=${k} />
      <div class="buttons">
        <button type="button" onClick=${()=>u(null)}>${e("Use a code instead")}</button>
      </div>
    </main>`:o`<main class="alone">
    <h1>${s?e("This browser was revoked"):e("Enroll this browser")}</h1>
    <p>
      ${s?e("It no longer has access, and its connections are closed."):e("It becomes a device of this yaya, with a key that never leaves the browser.")}
    </p>
    <form onSubmit=${r=>r.preventDefault()}>
      ${!X.current&&o`<${w} label=${e("Name of this browser")}>
        ${r=>o`<input id=${r} value=${y} maxlength="64" onInput=${v(W)} />`}
      <//>`}
      <${w}
        label=${e("Code")}
        hint=${e("From “yaya device invite”, or from the page on an enrolled device.")}>
        ${r=>o`<input
            id=${r}
            value=${d}
            autocomplete="off"
            spellcheck="false"
            placeholder="XXXX-XXXX-XXXX"
            onInput=${v(P)} />`}
      <//>
      <div class="buttons">
        <${b}
          kind="primary"
          disabled=${!d.trim()}
          run=${async()=>{let r=await S();await l(r,await q(r,d.trim()))}}>
          ${e("Enroll with the code")}
        <//>
        <${b} run=${async()=>{p(null),u(await S())}}>
          ${s?e("Ask again"):e("Ask for approval")}
        <//>
      </div>
      <${$} error=${k} />
    </form>
  </main>`}export{N as default};
