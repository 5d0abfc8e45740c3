import{b as N}from"./chunk-WKYUETWH.js";import{b as u,d as S,e as T}from"./chunk-ORFBRK3V.js";import"./chunk-43UXHYUF.js";import{E as L,I as n,J as $,T as m,Z as w,h as k,j as g,p as C,q as i,s as y,z as p}from"./chunk-DX5UZMM6.js";import{e as x,h as l,i as v,j as b}from"./chunk-7KQRHSI2.js";var M=s=>s.state==="ready"||s.state==="degraded",h=s=>s.toLocaleString(x());function _({all:s}){let a=o=>s.filter(o).length,e=a(o=>o.state==="failed"||o.state==="invalid"),r=a(o=>o.state==="disabled"||o.state==="stopped"),t=a(M),c=0;return n`<svg
    class="meter"
    viewBox="0 0 120 6"
    preserveAspectRatio="none"
    role="img"
    aria-label=${l("{good} ready, {bad} failed, {off} off",{good:t,bad:e,off:r})}>
    ${[["sok",t],["swarn",s.length-t-e-r],["se",e],["soff",r]].map(([o,d])=>{let f=Number(d)/Math.max(1,s.length)*120;return c+=f,f>0&&n`<rect class=${"f "+o} x=${c-f} width=${f} height="6" />`})}
  </svg>`}function F({servers:s,hour:a}){let e=a?.total,r=a?.groups.reduce((t,c)=>c.errors>t.errors?c:t,a.groups[0]);return n`<div class="sums">
    ${s&&n`<a href=${i("servers")}>
      <span class="k"><${$} of="server" />${l("Servers ready")}</span>
      <span class="v">
        ${s.filter(M).length} <small>${l("of {n}",{n:s.length})}</small>
      </span>
      <${_} all=${s} />
    </a>`}
    ${a&&e&&n`
      <a href=${i("traffic","last:60")}>
        <span class="k"><${$} of="traffic" />${l("Calls, last hour")}</span>
        <span class="v">${h(e.calls)}</span>
        <${u}
          tone="s1"
          fill
          label=${l("Calls by minute")}
          values=${a.slices.map(t=>t.calls)} />
      </a>
      <a href=${i("traffic","failed last:60")}>
        <span class="k"><${$} of="error" />${l("Failed")}</span>
        <span class="v">
          ${e.calls?(e.errors/e.calls*100).toFixed(1)+" %":"–"}
          ${r&&r.errors>0&&n`<small class="bad">
            ${v("{n} of {all} in {server}",{n:r.errors,all:e.errors,server:n`<${m} text=${r.name||"yaya"} max=${24} />`})}
          </small>`}
        </span>
        <${u}
          tone="se"
          label=${l("Failed calls by minute")}
          values=${a.slices.map(t=>t.errors)} />
      </a>
      <a href=${i("metrics")} title=${l("95 % of the calls took at most that long")}>
        <span class="k"><${$} of="clock" />p95</span>
        <span class="v">
          ${e.calls?p(e.p95_ms):"–"}
          ${e.calls>0&&n`<small>${l("median {time}",{time:p(e.p50_ms)})}</small>`}
        </span>
        <${u}
          tone="s2"
          label=${l("p95 by minute")}
          values=${a.slices.map(t=>t.calls?t.p95_ms:null)} />
      </a>
    `}
  </div>`}function P({hour:s}){let a={name:l("failed"),tone:"se",values:s.slices.map(t=>t.errors)},e={name:l("answered"),tone:"s1",values:s.slices.map(t=>t.calls-t.errors)},r=s.total;return n`<section class="box" aria-label=${l("Calls")}>
    <header>
      <h2>${l("Calls")}</h2>
      <span class="faint">${l("a minute")}</span>
      <${T} lines=${[[e,h(r.calls-r.errors)],[a,h(r.errors)]]} />
    </header>
    <div class="body">
      <${S}
        stacked
        label=${l("Calls by minute in the last hour")}
        times=${s.slices.map(t=>Date.parse(t.ts))}
        lines=${[e,a]}
        show=${h} />
    </div>
  </section>`}function B({calls:s}){return n`<section class="box" aria-label=${l("Last calls")}>
    <header>
      <h2>${l("Last calls")}</h2>
      <a class="end" href=${i("traffic")}>${l("Traffic")}</a>
    </header>
    ${s.length?n`<ul class="rows tight">
          ${s.map(a=>n`<li key=${a.id}>
                <span class=${a.outcome==="ok"?"dot good":"dot bad"}></span>
                <span class="cut grow">
                  <span class="faint"><${m} text=${a.server||"yaya"} max=${32} /></span>
                  ${" "}
                  <${m} text=${a.tool} max=${60} />
                </span>
                <small class=${a.outcome==="ok"?"faint nw":"bad nw"}>
                  ${a.outcome==="ok"?p(a.took_ms):L(a.outcome)}
                </small>
              </li>`)}
        </ul>`:n`<${w}>${l("No calls are recorded yet.")}<//>`}
  </section>`}var E=({list:s,connected:a})=>n`<section class="box" aria-label=${l("Clients")}>
    <header>
      <h2>${l("Clients")}</h2>
      <span class="faint">${l("last hour")}</span>
      ${a!==void 0&&n`<span class="faint end">
        ${b(a,"{n} MCP session","{n} MCP sessions")}
      </span>`}
    </header>
    ${s.length?n`<ul class="rows tight">
          ${s.slice(0,6).map(e=>n`<li key=${e.name}>
                  <span class="cut grow">
                    <${m} text=${e.name||l("yaya’s own agents and page")} max=${48} />
                  </span>
                  <small class="faint nw">${b(e.calls,"{n} call","{n} calls")}</small>
                  ${e.errors>0&&n`<small class="bad nw">${l("{n} failed",{n:e.errors})}</small>`}
                </li>`)}
        </ul>`:n`<${w}>
          ${v("No client has called in the last hour. {connect}",{connect:n`<a href=${i("start")}>${l("Connect one")}</a>`})}
        <//>`}
  </section>`;function A(){let s=C("audit:read"),[a,e]=k([]),r=y(s?"/api/traffic/series?by=server":null,[]),t=y(s?"/api/traffic/series?by=client":null,[]),c=a[0]?.id;return g(()=>{if(!s)return;let o=new N({},6,()=>e(o.list.slice(-6).reverse()));return()=>o.close()},[s]),g(()=>{if(!c)return;let o=setTimeout(()=>{r.reload(),t.reload()},2e3);return()=>clearTimeout(o)},[c]),{calls:a,hour:r.data,clients:t.data}}function H({servers:s,connected:a,left:e,below:r,right:t}){let{calls:c,hour:o,clients:d}=A();return n`
    <${F} servers=${s} hour=${o} />
    <div class="cols c21">
      <div class="col">${e} ${o&&n`<${P} hour=${o} />`} ${r}</div>
      <div class="col">
        ${t} ${o&&n`<${B} calls=${c} />`}
        ${d&&n`<${E} list=${d.groups} connected=${a} />`}
      </div>
    </div>
  `}export{H as Board};
