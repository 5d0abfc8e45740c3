import{a as O,b as _,c as U,d as B,e as j,f as H}from"./chunk-ENLNMQ6T.js";import{a as F}from"./chunk-ZAOT4YSA.js";import{a as P,b as R}from"./chunk-IY4UA5QU.js";import{a as A}from"./chunk-43UXHYUF.js";import{$ as I,I as s,J as k,T as i,V as w,W as T,Y as V,Z as E,ba as N,c as f,ca as q,d as S,da as L,h as u,o as M,p as b,s as g,u as p}from"./chunk-DX5UZMM6.js";import{h as e,i as h,j as z}from"./chunk-7KQRHSI2.js";var K=[["30",e("30 days")],["90",e("90 days")],["365",e("a year")],["",e("never")]];function Q({done:t}){let n=g(b("config:read")?"/api/mcp/servers":null,["servers"]),[c,$]=u(""),[o,l]=u("90"),[v,d]=u(new Set(["tools:call"])),[m,D]=u(new Set),[a,C]=u(null);if(a)return s`<${P} title=${e("The token")} onClose=${t}>
      <p>
        ${h("It is shown this once. A client sends it as {header}",{header:s`<code>Authorization: Bearer …</code>`})}
      </p>
      <p class="big"><code>${p(a.token)}</code> <${F} text=${a.token} /></p>
      <div class="buttons">
        <button type="button" class="primary" onClick=${t}>${e("Done")}</button>
      </div>
    <//>`;let Y=r=>{let y=new Set(m);y.delete(r)||y.add(r),D(y),y.size&&d(new Set(["tools:call"]))},G=async()=>{let r=o&&new Date(Date.now()+Number(o)*864e5).toISOString();C(await f("POST","/api/tokens",{name:c.trim(),scopes:[...v],...m.size&&{servers:[...m]},...r&&{expires_at:r}}))};return s`<${P} title=${e("Create a token")} onClose=${t}>
    <${L}
      label=${e("Name")}
      hint=${e("Rules, profiles and the audit log refer to the client as token:NAME.")}>
      ${r=>s`<input id=${r} value=${c} spellcheck="false" onInput=${q($)} />`}
    <//>
    <${L} label=${e("Expires after")}>
      ${r=>s`<select id=${r} value=${o} onChange=${q(l)}>
          ${K.map(([y,J])=>s`<option value=${y}>${J}</option>`)}
        </select>`}
    <//>
    ${n.data&&n.data.length>0&&s`<fieldset class="scopes">
      <legend>${e("Only for these servers (none: for all)")}</legend>
      ${n.data.map(r=>s`<label>
            <input
              type="checkbox"
              checked=${m.has(r.name)}
              onChange=${()=>Y(r.name)} /> <${i} text=${r.name} max=${48} />
          </label>`)}
    </fieldset>`}
    ${m.size?s`<p class="muted">${e("A token for selected servers can only call their tools.")}</p>`:s`<${B} value=${v} set=${d} token />`}
    <div class="buttons">
      <button type="button" onClick=${t}>${e("Cancel")}</button>
      <${N} arm kind="primary" disabled=${!c.trim()} run=${G}>${e("Create")}<//>
    </div>
  <//>`}var X=({x:t,manage:n})=>s`<tr role="row">
    <td role="cell" class="p1"><b class="strong"><${i} text=${t.name} max=${64} /></b></td>
    <td role="cell" class="p2"><${T} state=${t.status} /></td>
    <td role="cell" class="wide">
      <small title=${t.scopes.join(", ")}>${_(t.scopes)}</small>
    </td>
    <td role="cell" class="wide">
      ${t.servers?.length?s`<${i} text=${t.servers.join(", ")} max=${80} />`:e("all servers")}
    </td>
    <td role="cell">${t.expires_at?s`<${w} at=${t.expires_at} />`:e("never")}</td>
    <td role="cell">${t.last_used?s`<${w} at=${t.last_used} />`:e("never")}</td>
    <td role="cell" class="p3">
      <span class="only-narrow faint">${_(t.scopes)}</span>
      ${n&&s`<span class="acts">
        <${R}
          kind="small danger"
          label=${e("Revoke {name}",{name:p(t.name)})}
          yes=${e("Revoke")}
          ask=${h("Clients with the token {name} lose access at once, and their connections are closed.",{name:s`<b><${i} text=${t.name} /></b>`})}
          run=${()=>f("DELETE",`/api/tokens/${S(t.name)}`)}>
          ${e("Revoke")}
        <//>
      </span>`}
    </td>
  </tr>`;function W(){let t=g("/api/tokens",["devices"]),[n,c]=u(!1),$=b("devices:manage");return s`
    <section class="box" aria-label=${e("Tokens")}>
      <header>
        <h2>${e("Tokens")}</h2>
        <span class="faint">
          ${e("For MCP clients on other machines that do not have their own key.")}
        </span>
        ${$&&s`<button type="button" class="small end" onClick=${()=>c(!0)}>
          ${e("Create a token")}
        </button>`}
      </header>
      <${I} of=${t}>
        ${o=>o.length?s`<table class="list" role="table" aria-label=${e("Tokens")}>
                <thead role="rowgroup">
                  <tr role="row">
                    <th role="columnheader">${e("Token")}</th>
                    <th role="columnheader">${e("State")}</th>
                    <th role="columnheader" class="wide">${e("May")}</th>
                    <th role="columnheader" class="wide">${e("Servers")}</th>
                    <th role="columnheader">${e("Expires")}</th>
                    <th role="columnheader">${e("Last used")}</th>
                    <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
                  </tr>
                </thead>
                <tbody role="rowgroup">
                  ${o.map(l=>s`<${X} key=${l.name} x=${l} manage=${$} />`)}
                </tbody>
              </table>`:s`<${E}>${e("There are no tokens.")}<//>`}
      <//>
    </section>
    ${n&&s`<${Q} done=${()=>c(!1)} />`}
  `}A("servers");A("models");A("devices");var Z=({x:t,choose:n})=>s`<section
    class="ask"
    aria-label=${e("yaya asks: approve {name}?",{name:p(t.label||t.device_id).slice(0,64)})}>
    <header>
      <span class="seal"><${k} of="shield" />${e("yaya asks")}</span>
      <h2>
        ${h("Approve {name}?",{name:s`<${i} text=${t.label||t.device_id} max=${64} />`})}
      </h2>
      <span class="end faint"><${w} at=${t.since} /></span>
    </header>
    <div class="body flex waits">
      <span class="ico busy"><${k} of="device" /></span>
      <div class="grow">
        <p>
          ${h("It asks from {peer}. It must show the same id as here: if it does not, reject it.",{peer:p(t.peer)})}
        </p>
        <p class="faint">
          ${h("The fingerprint of its key is {fingerprint}",{fingerprint:s`<code>${p(t.fingerprint)}</code>`})}
        </p>
      </div>
      <code class="id"><${i} text=${t.device_id} max=${48} /></code>
    </div>
    ${b("devices:approve")&&s`<footer>
      <button type="button" class="primary" onClick=${()=>n(t)}>
        <${k} of="check" />
        ${e("Approve …")}
      </button>
      <${N}
        kind="danger"
        run=${()=>f("POST","/api/devices/reject",{request:t.request_id??""})}>
        ${e("Reject")}
      <//>
    </footer>`}
  </section>`,x=({x:t})=>t.connections?s`<span class="state good">
        <span class="dot good"></span>
        ${z(t.connections,"{n} connection","{n} connections")}
      </span>`:t.last_seen?s`<${w} at=${t.last_seen} />`:s`<span class="faint">${e("never")}</span>`;function ee({x:t,change:n}){let c=M.me.use(),$=t.device_id===c?.id,o=p(t.label||t.device_id);return s`<tr role="row" class=${t.status==="active"?"":"gone"}>
    <td role="cell" class="p1">
      <span class="flex">
        <span class="ico"><${k} of="device" /></span>
        <span class="two">
          <span>
            <b class="strong"><${i} text=${o} max=${64} /></b>
            ${$&&s` <span class="badge">${e("this one")}</span>`}
          </span>
          <small class="mono cut" title=${p(t.fingerprint)}>
            <${i} text=${t.fingerprint} max=${24} />
          </small>
        </span>
      </span>
    </td>
    ${t.status==="active"?O.map(l=>s`<td role="cell" key=${l.title} class="tick wide">
              ${t.scopes.includes(l.scope)?s`<${k} of="check" /><span class="sr">${e("yes")}</span>`:s`
                    <span class="faint" aria-hidden="true">–</span>
                    <span class="sr">${e("no")}</span>
                  `}
            </td>`):s`<td role="cell" class="wide" colspan=${O.length}>
          <${T} state=${t.status} />
        </td>`}
    <td role="cell" class="p2"><${x} x=${t} /></td>
    <td role="cell" class="p3">
      <span class="only-narrow faint">
        ${t.status==="active"?_(t.scopes):s`<${T} state=${t.status} />`}
      </span>
      ${t.status==="active"&&b("devices:manage")&&s`<span class="acts">
        <button
          type="button"
          class="small"
          aria-label=${e("Rights of {name}",{name:o})}
          onClick=${()=>n(t)}>
          ${e("Rights …")}
        </button>
        <${R}
          kind="small danger"
          label=${e("Revoke {name}",{name:o})}
          yes=${e("Revoke")}
          ask=${h("{name} loses access at once, and its connections are closed.",{name:s`<b><${i} text=${o} /></b>`})}
          run=${()=>f("POST",`/api/devices/${S(t.device_id)}/revoke`,{})}>
          ${e("Revoke")}
        <//>
      </span>`}
    </td>
  </tr>`}function te(){let t=g("/api/devices",["devices"]),n=g(b("config:read")?"/api/setup":null,[]),[c,$]=u(null),o=()=>$(null),{approve:l,scopes:v}=c??{};return s`<${V}
    title=${e("Devices")}
    actions=${b("devices:approve")&&s`<button type="button" class="primary" onClick=${()=>$({invite:!0})}>
      <${k} of="plus" />
      ${e("Add a device")}
    </button>`}>
    <${I} of=${t}>
      ${d=>{let m=d.filter(a=>a.status!=="pending"),D=m.filter(a=>a.status==="active").length;return s`
          ${d.filter(a=>a.status==="pending").map(a=>s`<${Z}
                  key=${a.request_id}
                  x=${a}
                  choose=${C=>$({approve:C})} />`)}
          <section class="box" aria-label=${e("Devices")}>
            <header>
              <h2>${e("Devices")}</h2>
              <span class="faint">
                ${e("Phones, other machines, other browsers. Each has a key of its own, and rights that you can revoke at once.")}
              </span>
              <span class="faint end">${D>0&&e("{n} approved",{n:D})}</span>
            </header>
            ${m.length?s`<table class="list" role="table" aria-label=${e("Devices")}>
                  <thead role="rowgroup">
                    <tr role="row">
                      <th role="columnheader">${e("Device")}</th>
                      ${O.map(a=>s`<th role="columnheader" class="tick wide">${a.title}</th>`)}
                      <th role="columnheader">${e("Seen")}</th>
                      <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
                    </tr>
                  </thead>
                  <tbody role="rowgroup">
                    ${m.map(a=>s`<${ee}
                          key=${a.device_id}
                          x=${a}
                          change=${C=>$({scopes:C})} />`)}
                  </tbody>
                </table>`:s`<${E} icon="device">
                  ${e("No devices are approved. Add one with a code, or open this page on it.")}
                <//>`}
          </section>
        `}}
    <//>
    <${W} />
    ${c?.invite&&s`<${H} done=${o} url=${n.data?.remote?n.data.url:""} />`}
    ${l&&s`<${j}
      title=${e("Approve the device")}
      yes=${e("Approve")}
      start=${U}
      done=${o}
      run=${d=>f("POST","/api/devices/approve",{request:l.request_id??"",scopes:d})}>
      <p>
        ${h("{name} asks from {peer}. Its id is {id}. Does the device show the same?",{name:s`<b><${i} text=${l.label} max=${64} /></b>`,peer:p(l.peer),id:s`<code><${i} text=${l.device_id} max=${64} /></code>`})}
      </p>
    <//>`}
    ${v&&s`<${j}
      title=${e("Rights of {name}",{name:p(v.label||v.device_id)})}
      yes=${e("Change")}
      start=${v.scopes}
      done=${o}
      run=${d=>f("PUT",`/api/devices/${S(v.device_id)}/scopes`,{scopes:d})} />`}
  <//>`}export{te as default};
