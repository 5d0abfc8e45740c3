import{b as L}from"./chunk-OFM2GSUS.js";import{a as C,b as g}from"./chunk-5YHDVP7A.js";import{a as F,b as J}from"./chunk-IY4UA5QU.js";import{a as B}from"./chunk-43UXHYUF.js";import{$ as U,I as o,J as j,T as S,X as M,Y as P,Z as D,ba as H,c as y,ca as c,d as h,da as x,h as s,j as I,p as T,s as O,u as f}from"./chunk-DX5UZMM6.js";import{h as e,i as w}from"./chunk-7KQRHSI2.js";var K=t=>Array.isArray(t)&&t.every(n=>typeof n=="string");function R(t){let n=t.value??t.default;return n===void 0?"":t.type==="list"&&K(n)?n.join(`
`):t.type&&t.type!=="json"&&t.type!=="list"&&typeof n!="object"?String(n):JSON.stringify(n,null,2)}function V(t,n){switch(t.type){case"text":case"duration":return n.trim();case"number":{let i=Number(n.trim());if(!n.trim()||!Number.isFinite(i))throw new Error(e("The value must be a number."));return i}case"list":return n.split(`
`).map(i=>i.trim()).filter(Boolean);default:try{return JSON.parse(n)}catch{throw new Error(e("The value must be JSON: put quotes around a text."))}}}function G(t,n,i,a){return t.choices?.length?o`<select id=${n} onChange=${c(a)}>
      ${t.choices.map(r=>o`<option value=${r} selected=${r===i}>${f(r)}</option>`)}
    </select>`:t.type==="number"?o`<input id=${n} inputmode="decimal" value=${i} onInput=${c(a)} />`:t.type==="text"||t.type==="duration"?o`<input id=${n} spellcheck="false" value=${i} onInput=${c(a)} />`:o`<textarea
    id=${n}
    class="code"
    rows=${t.type==="list"?4:8}
    spellcheck="false"
    value=${i}
    onInput=${c(a)}></textarea>`}var _=new Map([["duration",e("A number with a unit, such as 30s, 10m or 1h.")],["list",e("One entry a line.")],["json",e("The value as JSON.")]]);function W({row:t,done:n}){let[i,a]=s(t.key??""),[r,d]=s(R(t)||t.choices?.[0]||""),l=async()=>{await y("PATCH",`/api/config/${h(i.trim())}`,{value:V(t,r)}),n()};return o`<${F} title=${t.key??e("Set a value")} onClose=${n}>
    ${t.doc&&o`<p><${g} of="setting" text=${t.doc} /></p>`}
    ${!t.key&&o`<${x} label=${e("Key")} hint=${e("As in plugin.NAME.FIELD or approval.groups.NAME.")}>
      ${$=>o`<input id=${$} value=${i} spellcheck="false" onInput=${c(a)} />`}
    <//>`}
    <${x} label=${e("Value")} hint=${_.get(t.type??"json")}>
      ${$=>G(t,$,r,d)}
    <//>
    ${t.unset&&o`<p class="faint">
      ${w("Without a value: {what}",{what:o`<bdi><${g} of="setting" text=${t.unset} /></bdi>`})}
    </p>`}
    <div class="buttons">
      <button type="button" onClick=${n}>${e("Cancel")}</button>
      <${H} kind="primary" disabled=${!i.trim()} run=${l}>${e("Save")}<//>
    </div>
  <//>`}function q({s:t,write:n}){let i=!!(t.value??t.default),[a,r]=s(!1),[d,l]=s(null),$=async m=>{let b=m.target.checked;r(!0),l(null);try{await y("PATCH",`/api/config/${h(t.key)}`,{value:b})}catch(p){m.target.checked=i,l(p)}r(!1)};return o`
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label=${f(t.key)}
      checked=${i}
      disabled=${a||!n}
      onChange=${$} />
    <${M} error=${d} />
  `}B("settings");var E=[{title:e("Access"),of:["approval","auth","workspace"]},{title:e("Servers and tools"),of:["servers","http","wire"]},{title:e("Sandbox"),of:["sandbox"]},{title:e("Models and agents"),of:["provider","strategy","loop","compaction","session","agent_tool"]},{title:e("What is kept"),of:["traffic","retention"]},{title:e("Log and telemetry"),of:["log","otel"]},{title:e("Plugins and hooks"),of:["plugins","hooks"]},{title:e("Plugins and providers, by key"),of:[]}],z=t=>{let n=t.key.split(".")[0],i=t.type||t.key.startsWith("approval.")?E.findIndex(a=>a.of.includes(n)):-1;return i<0?E.length-1:i},Q=new Map([["flag",e("by a flag")],["environment",e("from the environment")],["set",e("set here")],["file",e("from the file")],["default",e("default")]]),X=t=>t===void 0?"–":typeof t=="string"?t:Array.isArray(t)&&t.every(n=>typeof n=="string")?t.join(", ")||"–":JSON.stringify(t),Y=({s:t,write:n,change:i})=>o`<li class="setting">
    <span class="two">
      <code class="strong"><${S} text=${t.key} max=${100} /></code>
      ${t.doc&&o`<small><${g} of="setting" text=${t.doc} /></small>`}
    </span>
    <span class="value">
      ${t.type==="boolean"?o`<${q} s=${t} write=${n} />`:o`<code>
            <${S}
              text=${t.value===void 0&&t.unset?C("setting",t.unset):X(t.value)}
              max=${80} />
          </code>`}
      ${t.origin&&t.origin!=="default"&&o`<span class="badge">${Q.get(t.origin)??f(t.origin)}</span>`}
      ${t.waits&&o`<span class="badge busy">${e("from the next start on")}</span>`}
    </span>
    ${n&&o`<span class="acts">
      ${t.origin==="set"&&o`<${J}
        kind="small quiet"
        label=${e("Unset {key}",{key:f(t.key)})}
        yes=${e("Unset")}
        ask=${w("{key} returns to the value that it has without this change.",{key:o`<code><${S} text=${t.key} /></code>`})}
        run=${()=>y("DELETE",`/api/config/${h(t.key)}`)}>
        ${e("Unset")}
      <//>`}
      ${t.type!=="boolean"&&o`<button
        type="button"
        class="small"
        aria-label=${e("Change {name}",{name:f(t.key)})}
        onClick=${()=>i(t)}>
        ${e("Change")}
      </button>`}
    </span>`}
  </li>`;function Z({rest:[t=""]}){let n=O("/api/settings",["config"]),[i,a]=s(null),[r,d]=s(t);I(()=>d(t),[t]);let[l,$]=s(!1),m=T("config:write"),b=r.toLowerCase().split(/\s+/).filter(Boolean);return o`<${P}
    title=${e("Settings")}
    actions=${m&&o`<button type="button" onClick=${()=>a({})}>
      <${j} of="plus" />
      ${e("Set a value")}
    </button>`}>
    ${!b.length&&!l&&o`<${L} />`}
    <div class="filters top">
      <input
        type="search"
        class="narrow"
        aria-label=${e("Filter settings")}
        placeholder=${e("Filter settings")}
        value=${r}
        onInput=${c(d)} />
      <div class="seg" role="group" aria-label=${e("Show")}>
        ${[!1,!0].map(p=>o`<button type="button" aria-pressed=${p===l} onClick=${()=>$(p)}>
              ${p?e("Changed"):e("All")}
            </button>`)}
      </div>
    </div>
    <${U} of=${n}>
      ${p=>{let N=p.filter(u=>b.every(k=>`${u.key} ${u.doc??""} ${C("setting",u.doc??"")}`.toLowerCase().includes(k))&&(!l||u.origin&&u.origin!=="default"));return N.length?E.map((u,k)=>{let A=N.filter(v=>z(v)===k);return A.length>0&&o`<section class="box" key=${k} aria-label=${u.title}>
              <header><h2>${u.title}</h2></header>
              <ul class="rows">
                ${A.map(v=>o`<${Y} key=${v.key} s=${v} write=${m} change=${a} />`)}
              </ul>
            </section>`}):o`<${D}>${e("No settings match.")}<//>`}}
    <//>
    ${i&&o`<${W} row=${i} done=${()=>a(null)} />`}
  <//>`}export{Z as default};
