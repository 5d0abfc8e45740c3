import{b as N}from"./chunk-FNYZOFRU.js";import{a as S}from"./chunk-ZAOT4YSA.js";import{a as T}from"./chunk-IY4UA5QU.js";import{a as L}from"./chunk-QK6JMVOZ.js";import{a as $}from"./chunk-43UXHYUF.js";import{$ as B,A as k,I as a,J as O,N as D,T as m,U as w,Y as P,Z as A,ba as g,c as f,d as u,h as y,o as C,p as v,q as b,s as p,u as r}from"./chunk-DX5UZMM6.js";import{e as d,h as e,i as h}from"./chunk-7KQRHSI2.js";$("servers");$("models");$("devices");var I=t=>[...t.was?t.was.trimEnd().split(`
`).map(s=>"-"+s):[],...t.now?t.now.trimEnd().split(`
`).map(s=>"+"+s):[]].map(s=>r(s)).join(`
`);function W({c:t,done:s,again:l}){let c=r(t.name),i=async()=>{let o=await f("POST",`/api/client-changes/${u(t.id)}/apply`);D(o.backup?e("{file} is written. Its copy from before is {backup}. Restart {name} to apply it.",{file:r(o.file),backup:r(o.backup),name:c}):e("{file} is written. Restart {name} to apply it.",{file:r(o.file),name:c})),l(),s()};return a`<${T}
    wide
    title=${t.now?e("Connect {name}",{name:c}):e("Disconnect {name}",{name:c})}
    onClose=${s}>
    <p>
      ${t.gone?e("The file has nothing but the entry of yaya, and is removed."):t.new?e("The file is new: it has the entry of yaya alone."):e("Only the entry of yaya changes. A copy of the file is kept beside it.")}
    </p>
    <p><code><${m} text=${t.file} max=${500} /></code></p>
    <${w} all diff text=${I(t)} label=${e("What changes in the file")} />
    <div class="buttons">
      <button type="button" onClick=${s}>${e("Cancel")}</button>
      <${g} arm kind="primary" run=${i}>${t.gone?e("Remove the file"):e("Write it")}<//>
    </div>
  <//>`}var j=({f:t})=>t.error?a`<span class="state bad wrap" title=${r(t.error)}>
        <span class="dot bad"></span>
        ${e("The file cannot be read")}
      </span>`:t.other?a`<span class="state busy wrap">
          <span class="dot busy"></span>
          ${e("Another program has the name yaya there")}
        </span>`:t.yaya?a`<span class="state good"><span class="dot good"></span>${e("Connected")}</span>`:a`<span class="state off"><span class="dot off"></span>${e("Not connected")}</span>`;function M({of:t}){let[s,l]=y(null),c=async i=>l(await f("POST",`/api/clients/${u(i.client)}/changes`,{file:i.file,remove:!!i.yaya}));return a`
    <${B} of=${t}>
      ${i=>{let o=i.filter(n=>n.found),x=[...new Set(i.filter(n=>!n.found).map(n=>n.name))].filter(n=>!o.some(q=>q.name===n));return a`<section class="box" aria-label=${e("On this machine")}>
          <header>
            <h2>${e("On this machine")}</h2>
            <span class="faint">
              ${e("{n} of {all} connected",{n:o.filter(n=>n.yaya).length,all:o.length})}
            </span>
            <button type="button" class="small quiet end" onClick=${t.reload}>
              <${O} of="restart" />
              ${e("Look again")}
            </button>
          </header>
          ${o.length?a`<table class="list" role="table" aria-label=${e("Clients")}>
                <thead role="rowgroup">
                  <tr role="row">
                    <th role="columnheader">${e("Client")}</th>
                    <th role="columnheader">${e("State")}</th>
                    <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
                  </tr>
                </thead>
                <tbody role="rowgroup">
                  ${o.map(n=>a`<tr role="row" key=${n.file}>
                      <td role="cell" class="p1">
                        <span class="flex">
                          <${L} name=${n.name} />
                          <span class="two">
                            <b class="strong">${r(n.name)}</b>
                            <small class="mono"><${m} text=${n.file} max=${120} /></small>
                          </span>
                        </span>
                      </td>
                      <td role="cell" class="p2"><${j} f=${n} /></td>
                      <td role="cell" class="p3">
                        <span class="acts">
                          ${!n.error&&!n.other&&a`<${g}
                            kind=${n.yaya?"small quiet":"small"}
                            label=${n.yaya?e("Disconnect {name}",{name:r(n.name)}):e("Connect {name}",{name:r(n.name)})}
                            run=${()=>c(n)}>
                            ${n.yaya?e("Disconnect …"):e("Connect …")}
                          <//>`}
                        </span>
                      </td>
                    </tr>`)}
                </tbody>
              </table>`:a`<${A} icon="client">${e("No MCP client was found on this machine.")}<//>`}
          ${x.length>0&&a`<p class="faint under">
            ${h("Not found here: {names}",{names:a`<bdi>${k(x)}</bdi>`})}
          </p>`}
        </section>`}}
    <//>
    ${s&&a`<${W} c=${s} done=${()=>l(null)} again=${t.reload} />`}
  `}var E=t=>t==="Other clients"?e("Other clients"):r(t);function V({start:t="Other clients"}){let s=p("/api/setup",["config"]).data,[l,c]=y(t),i=s?.snippets.find(o=>o.client===l);return s?a`<section class="box" aria-label=${e("By hand")}>
    <header><h2>${e("By hand")}</h2></header>
    <div class="body">
      <div class="tabs" role="tablist" aria-label=${e("Clients")}>
        ${s.snippets.map(o=>a`<button
              type="button"
              role="tab"
              aria-selected=${o.client===l}
              onClick=${()=>c(o.client)}>
              ${E(o.client)}
            </button>`)}
      </div>
      ${i&&a`<div role="tabpanel" aria-label=${E(i.client)}>
        <p lang="en">${r(i.where)}</p>
        <${w} all text=${i.text} label=${e("Text to copy")} />
        <${S} text=${i.text} />
      </div>`}
    </div>
  </section>`:null}function z(){let s=p(v("audit:read")?"/api/traffic/series?by=client&step=1440&slices=60":null,[]).data?.groups.filter(l=>l.name)??[];return s.length?a`<section class="box" aria-label=${e("Called in the last 24 hours")}>
    <header><h2>${e("Called in the last 24 hours")}</h2></header>
    <div class="rows tight">
      ${s.slice(0,20).map(l=>a`<a key=${l.name} href=${b("traffic",N({client:l.name,span:1440}))}>
              <span class="cut grow"><${m} text=${l.name} max=${64} /></span>
              <small class="faint">${l.calls.toLocaleString(d())}</small>
              ${l.errors>0&&a`<small class="bad">
                ${e("{n} failed",{n:l.errors.toLocaleString(d())})}
              </small>`}
            </a>`)}
    </div>
  </section>`:null}var R=()=>C.me.value?.kind==="owner";function F(){let t=p(R()?"/api/clients":null,[]);return a`<${P}
    title=${e("Clients")}
    actions=${a`<a class="button" href=${b("start","call")}>${e("Try a call")}</a>`}>
    ${R()?a`<${M} of=${t} />`:a`<p class="notice">
          ${e("The files of clients are shown on the machine that yaya runs on, to the user that runs it.")}
        </p>`}
    <${z} />
    <${V} />
    <p class="faint">
      ${h("On a terminal, {command} does the same.",{command:a`<code>yaya client</code>`})}
    </p>
  <//>`}export{I as a,M as b,V as c,R as d,F as e};
