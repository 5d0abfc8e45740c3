import{a as U}from"./chunk-O7JAVTGA.js";import{a as K}from"./chunk-IY4UA5QU.js";import{a as J}from"./chunk-QK6JMVOZ.js";import{a as R}from"./chunk-43UXHYUF.js";import{$ as X,I as a,J as T,N as z,T as y,X as C,Y as W,Z as Q,ba as S,c as v,ca as g,d as k,da as x,h as p,j as _,p as E,q as j,r as P,s as B,u as d}from"./chunk-DX5UZMM6.js";import{h as t}from"./chunk-7KQRHSI2.js";var D="approval.rules",Z={mcp:!0,loop:!0,ask:!1},q=[["mcp",t("MCP clients"),t("MCP clients may not call its tools: yaya refuses their calls.")],["loop",t("yaya’s own agents"),t("yaya’s own agents may not call its tools: yaya refuses their calls.")]],ee=({now:e,set:n})=>a`
  <fieldset class="texts">
    <legend>${t("Offer to")}</legend>
    ${q.map(([s,o])=>a`<label class="flex" key=${s}>
          <input
            type="checkbox"
            checked=${e[s]}
            onChange=${()=>n({...e,[s]:!e[s]})} />
          ${o}
        </label>`)}
  </fieldset>
  ${e.mcp&&a`<${x}
    label=${t("Calls of MCP clients")}
    hint=${t("yaya asks you about the calls of its own agents anyway.")}>
    ${s=>a`<select
        id=${s}
        value=${e.ask?"ask":""}
        onChange=${g(o=>n({...e,ask:o==="ask"}))}>
        <option value="">${t("The users of the clients approve them")}</option>
        <option value="ask">${t("yaya asks you about each")}</option>
      </select>`}
  <//>`}
`,te=e=>e.mcp&&e.ask,ae=e=>[...q.filter(([n])=>!e[n]).map(([,,n])=>n),...te(e)?[t("yaya asks you about each call of an MCP client.")]:[]],M=e=>JSON.stringify(Object.entries(e??{}).sort());async function Y(e){let n=(await v("GET","/api/settings")).find(s=>s.key===D)?.value??[];if(!Array.isArray(n))throw new Error(t("The setting {name} is not a list.",{name:D}));await v("PATCH",`/api/config/${k(D)}`,{value:e(n)})}async function se(e,n){let s=[...q.filter(([l])=>!n[l]).map(([l])=>({provider:e,origin:l,decision:"deny"})),...te(n)?[{provider:e,origin:"mcp",decision:"ask"}]:[]],o=new Set;return s.length&&await Y(l=>{let u=new Set(l.map(M)),f=s.filter(m=>!u.has(M(m)));for(let m of f)o.add(M(m));return[...l,...f]}),async()=>o.size>0&&Y(l=>l.filter(u=>!o.has(M(u))))}function oe({entry:e,close:n}){let[s,o]=p(null),[l,u]=p(null),[f,m]=p(""),[c,b]=p(""),[i,w]=p(""),[L,ne]=p(""),[I,re]=p({}),[N,le]=p(Z),[F,H]=p(null),V=async r=>{let h=new URLSearchParams({registry:e.registry,version:e.version});return r&&h.set("option",r),v("GET",`/api/catalogue/${k(e.name)}?${h.toString()}`)};_(()=>{let r=!1;return V("").then(h=>{r||(o(h),m(h.chosen??""),b(h.short_name))},h=>r||u(h)),()=>{r=!0}},[]);let $=s?.options.find(r=>r.id===f),ie=r=>h=>re({...I,[r]:h}),$e=async()=>{if(!s||!$)return;let r=($.inputs??[]).flatMap(A=>(A.repeated?(I[A.name]??"").split(`
`):[I[A.name]??""]).map(O=>O.trim()).filter(Boolean).map(O=>({name:A.name,value:O}))),h=L.split(/[\s,]+/).filter(Boolean);H(await v("POST",`/api/catalogue/${k(s.name)}/install`,{registry:s.registry,version:s.version,digest:s.digest,option:$.id,as:c.trim(),...r.length&&{inputs:r},...i&&{profile:i},...h.length&&{hosts:h}}))},ce=($?.inputs??[]).some(r=>r.required&&!r.default&&!I[r.name]?.trim());return F?a`<${U}
      changes=${[F]}
      added=${ae(N)}
      first=${()=>se(c.trim(),N)}
      cancel=${()=>H(null)}
      done=${()=>{n(),P("servers",c.trim())}} />`:a`<${K}
    wide
    title=${t("Add {name}",{name:d(e.title||e.name)})}
    onClose=${n}>
    <${C} error=${l} />
    <p class="muted">
      <${y} text=${e.name} max=${200} /> ${e.version} · ${e.registry}
    </p>
    ${s?.stale&&a`<${C} error=${t("The registry gave no usable answer: this may be old.")} />`}
    ${e.deprecated&&a`<p class="bad">
      ${t("Its publisher no longer maintains it.")}
      <${y} text=${e.message??""} max=${300} />
    </p>`}
    ${s?.refused&&a`<${C} error=${d(s.refused)} />`}
    ${s&&s.options.length>1&&a`<${pe} s=${s} option=${f} choose=${m} />`}
    ${$?.needs&&a`<p class="warn">
      ${t("{runner} is not on this machine. It comes with {needs}: {install}",{runner:$.runner??"",needs:$.needs,install:$.install??""})}
    </p>`}
    ${$?.fetch&&a`
      <p>${t("Its bundle says what it asks for.")}</p>
      <${S} run=${async()=>o(await V($.id))}>${t("Download the bundle")}<//
        >
    `}
    ${$&&!$.fetch&&a`
      <${x} label=${t("Name")} hint=${t("Its tools are called name__tool.")}>
        ${r=>a`<input
            id=${r}
            value=${c}
            spellcheck="false"
            maxlength="128"
            onInput=${g(b)} />`}
      <//>
      ${($.inputs??[]).map(r=>a`<${me}
            key=${`${$.id} ${r.name}`}
            i=${r}
            value=${I[r.name]??""}
            set=${ie(r.name)} />`)}
      ${$.kind!=="remote"&&$.kind!=="oci"&&a`
        <${x}
          label=${t("Sandbox")}
          hint=${t("Bounded: it reaches and reads what the next step shows, and no more.")}>
          ${r=>a`<select id=${r} value=${i} onChange=${g(w)}>
              <option value="">${t("Bounded")}</option>
              <option value="guarded">${t("All of your files and hosts")}</option>
            </select>`}
        <//>
        ${!i&&a`<${x}
          label=${t("Hosts")}
          hint=${t("Further hosts that it needs, such as api.example.com")}>
          ${r=>a`<input id=${r} value=${L} spellcheck="false" onInput=${g(ne)} />`}
        <//>`}
      `}
      <${ee} now=${N} set=${le} />
    `}
    <div class="buttons">
      <button type="button" onClick=${n}>${t("Cancel")}</button>
      <${S}
        kind="primary"
        disabled=${!$||$.fetch||!!$.refused||ce||!c.trim()}
        run=${$e}>
        ${t("Review")}
      <//>
    </div>
  <//>`}var pe=({s:e,option:n,choose:s})=>a`<fieldset class="texts">
    <legend>${t("Use")}</legend>
    ${e.options.map(o=>a`<label class="flex" key=${o.id}>
          <input
            type="radio"
            name="way"
            checked=${o.id===n}
            disabled=${!!o.refused}
            onChange=${()=>s(o.id)} />
          <span class="two">
            <span>
              ${o.id} <code><${y} text=${o.identifier} max=${120} /></code
            >
            </span>
            ${o.refused&&a`<small class="faint"><${y} text=${o.refused} max=${300} /></small>`}
          </span>
        </label>`)}
  </fieldset>`;function me({i:e,value:n,set:s}){let o=d(e.description??""),l=[o&&!/[.!?。]$/.test(o)?`${o}.`:o,e.secret?t("Secret: kept in the store of secrets."):"",e.repeated?t("One a line."):""].filter(Boolean).join(" "),u=e.required?d(e.name):t("{name} (optional)",{name:d(e.name)}),f=d(e.default||e.placeholder||"");return a`<${x} label=${u} hint=${l}>
    ${m=>e.choices?.length?a`<select id=${m} value=${n} onChange=${g(s)}>
            <option value="">${f}</option>
            ${e.choices.map(c=>a`<option key=${c} value=${c}>${d(c)}</option>`)}
          </select>`:e.repeated?a`<textarea
              id=${m}
              rows="3"
              class="code"
              spellcheck="false"
              value=${n}
              onInput=${g(s)}></textarea>`:a`<input
              id=${m}
              type=${e.secret?"password":"text"}
              autocomplete="off"
              spellcheck="false"
              placeholder=${f}
              value=${n}
              onInput=${g(s)} />`}
  <//>`}R("servers");R("catalogue");var G=[{title:t("All"),icon:"",has:()=>!0},{title:t("Remote"),icon:"globe",has:e=>e==="remote"},{title:t("This machine"),icon:"terminal",has:e=>e!=="remote"&&e!=="oci"},{title:t("Container"),icon:"lock",has:e=>e==="oci"}];function de({rest:[e=""]}){let[n,s]=p(e),[o,l]=p(0),[u,f]=p(null),m=B(`/api/catalogue?q=${encodeURIComponent(e)}`,["servers"]);return a`<${W}
    title=${t("Catalogue")}
    lead=${t("Anybody can publish a server. Nothing runs before you have seen exactly what would run, and approved it.")}>
    <${he} />
    <form
      class="filters"
      role="search"
      onSubmit=${c=>{c.preventDefault(),P("catalogue",n.trim())}}>
      <input
        type="search"
        class="grow"
        maxlength="200"
        aria-label=${t("Search the catalogue")}
        placeholder=${t("Search the catalogue")}
        value=${n}
        onInput=${g(s)} />
      <button type="submit"><${T} of="search" />${t("Search")}</button>
      <span class="seg" role="group" aria-label=${t("Show")}>
        ${G.map((c,b)=>a`<button
              key=${b}
              type="button"
              aria-pressed=${b===o}
              onClick=${()=>l(b)}>
              ${c.title}
            </button>`)}
      </span>
    </form>
    <${X} of=${m}>
      ${c=>a`<${ue} key=${e} first=${c} kind=${o} choose=${f} />`}
    <//>
    ${u&&a`<${oe} entry=${u} close=${()=>f(null)} />`}
  <//>`}function ue({first:e,kind:n,choose:s}){let[o,l]=p([]),u=[e,...o],f=new Set,m=u.flatMap(i=>i.servers).filter(i=>{let w=`${i.registry} ${i.name} ${i.version}`;return!f.has(w)&&f.add(w)&&i.kinds.some(G[n].has)}),c=u.at(-1)?.next,b=new Map;for(let i of u.flatMap(w=>w.registries))i.error&&b.set(i.name,i.error);return a`
    ${[...b].map(([i,w])=>a`<${C}
          key=${i}
          error=${t("The registry {name} gave no usable answer, so its servers are missing or old: {error}",{name:i,error:d(w)})} />`)}
    ${m.length?a`<ul class="plain cards catalogue">
          ${m.map(i=>a`<${fe}
                key=${`${i.registry} ${i.name} ${i.version}`}
                s=${i}
                choose=${s} />`)}
        </ul>`:a`<${Q} icon="catalogue">${t("No server fits.")}<//>`}
    ${c&&a`<div class="buttons">
      <${S} run=${async()=>{let i=await v("GET",`/api/catalogue?cursor=${encodeURIComponent(c)}`);l([...o,i])}}>
        ${t("Show more")}
      <//>
    </div>`}
  `}var fe=({s:e,choose:n})=>a`<li class="card">
    <span class="flex">
      <${J} name=${e.title||e.name} />
      <span class="two grow">
        <b class="strong"><${y} text=${e.title||e.name} max=${64} /></b>
        <small class="faint"><${y} text=${e.name} max=${80} /></small>
      </span>
      ${e.installed?a`<a class="badge good" href=${j("servers",e.installed)}>
            <${T} of="check" />
            ${t("Added")}
          </a>`:E("config:write")&&a`<button
            type="button"
            class="small"
            aria-label=${t("Add {name}",{name:d(e.title||e.name)})}
            onClick=${()=>n(e)}>
            <${T} of="plus" />
            ${t("Add")}
          </button>`}
    </span>
    <p><${y} text=${e.description} max=${300} /></p>
    <p class="faint flex">
      ${e.kinds.map(s=>{let o=G.findLast(l=>l.has(s));return a`<span class="badge" key=${s} title=${o?.title}>
          <${T} of=${o?.icon??""} />
          <bdi>${d(s)}</bdi>
        </span>`})}
      <bdi class="cut">${e.version} · ${e.registry}</bdi>
      ${e.deprecated&&a`<span class="badge bad">${t("deprecated")}</span>`}
    </p>
  </li>`;function he(){let e=B("/api/mcp/updates",["servers"]),[n,s]=p(null),o=(e.data??[]).filter(l=>l.newest);return!o.length&&!n?null:a`<section class="box" aria-label=${t("Updates")}>
    <header><h2>${t("Updates")}</h2></header>
    <ul class="plain body">
      ${o.map(l=>a`<li key=${l.server} class="flex">
            <span class="grow">
              <b><${y} text=${l.server} max=${64} /></b> ${" "}
              ${`${d(l.version)} → ${d(l.newest)}`}
            </span>
            ${E("config:write")&&a`<${S}
              kind="small"
              label=${t("Update {name}",{name:d(l.server)})}
              run=${async()=>s(await v("POST",`/api/mcp/servers/${k(l.server)}/update`))}>
              ${t("Update")}
            <//>`}
          </li>`)}
    </ul>
    ${n&&a`<${U}
      changes=${[n]}
      cancel=${()=>s(null)}
      done=${()=>{s(null),e.reload(),z(t("The change is in force."))}} />`}
  </section>`}export{de as default};
