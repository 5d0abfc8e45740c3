import{a as x}from"./chunk-43UXHYUF.js";import{$ as L,I as n,J as u,N as S,T as g,U as j,V as E,Y as O,Z as T,b as f,ba as N,ca as P,da as R,h,j as _,p as b,r as w,s as y,u as k}from"./chunk-DX5UZMM6.js";import{e as m,h as e,j as v}from"./chunk-7KQRHSI2.js";var C=new Map([["client_changed",e("{actor} changed the file of the client {target}",t())],["config_changed",e("{actor} set {target}",t())],["config_removed",e("{actor} unset {target}",t())],["models_refreshed",e("{actor} got a newer list of models",t())],["plugin_installing",e("{actor} installed the plugin {target}",t())],["plugin_proposed",e("{actor} proposed to install the plugin {target}",t())],["plugin_reloaded",e("{actor} reloaded the plugin {target}",t())],["plugin_removed",e("{actor} removed the plugin {target}",t())],["plugin_switched",e("{actor} switched the plugin {target}",t())],["provider_activated",e("{actor} chose the model {target}",t())],["provider_changed",e("{actor} changed the provider {target}",t())],["provider_created",e("{actor} added the provider {target}",t())],["provider_deleted",e("{actor} deleted the provider {target}",t())],["secret_removed",e("{actor} deleted the secret {target}",t())],["secret_set",e("{actor} set the secret {target}",t())],["secrets_shown",e("{actor} looked at the secrets of {target}",t())],["server_change_proposed",e("{actor} proposed a change of the server {target}",t())],["server_changed",e("{actor} changed the server {target}",t())],["server_removed",e("{actor} removed the server {target}",t())],["server_restarted",e("{actor} restarted the server {target}",t())],["server_switched",e("{actor} switched the server {target}",t())],["server_tool_switched",e("{actor} switched the tool {target}",t())],["tool_called",e("{actor} called the tool {target}",t())],["tools_approved",e("{actor} approved tools of {target}",t())],["agent_killed",e("{actor} ended the agent {target}",t())],["agent_registered",e("{actor} registered the agent {target}",t())],["approval_granted",e("{actor} approved the call {target}",t())],["approval_denied",e("{actor} rejected the call {target}",t())],["approval_requested",e("{actor} asked for approval of {target}",t())],["device_approved",e("{actor} approved the device {target}",t())],["device_enrolled",e("{actor} enrolled the device {target}",t())],["device_invited",e("{actor} created a code for a device",t())],["device_invite_withdrawn",e("{actor} withdrew a code for a device",t())],["device_revoked",e("{actor} revoked the device {target}",t())],["device_scopes_changed",e("{actor} changed the rights of the device {target}",t())],["device_token_issued",e("The device {target} got a token",t())],["folder_trusted",e("{actor} trusted the folder {target}",t())],["folder_revoked",e("{actor} no longer trusts the folder {target}",t())],["leader_elected",e("{target} leads the log",t())],["node_invited",e("{actor} invited the node {target}",t())],["node_joined",e("The node {target} joined the cluster",t())],["node_removed",e("{actor} removed the node {target}",t())],["node_drained",e("{actor} drained the node {target}",t())],["node_started",e("The node {target} started",t())],["token_created",e("{actor} created the token {target}",t())],["token_revoked",e("{actor} revoked the token {target}",t())],["signing_key_added",e("{actor} signs tokens with a new key",t())]]);function t(){return{actor:"{actor}",target:"{target}"}}function U(r,a){let o=C.get(r);return o?o.split(/(\{actor\}|\{target\})/).map(c=>c==="{actor}"?a.actor:c==="{target}"?a.target:c):null}x("audit");var A=100,D=1e4,I=[{title:e("1 h"),span:60},{title:e("24 h"),span:1440},{title:e("7 d"),span:10080},{title:e("All"),span:0}];function M(r){let a=new URLSearchParams(r);return{event:a.get("event")??"",actor:a.get("actor")??"",target:a.get("target")??"",span:Math.min(Number.parseInt(a.get("last")??"",10)||0,525600)}}var $=r=>[["event",r.event],["actor",r.actor],["target",r.target],["last",r.span]].flatMap(([a,o])=>o?[a,String(o)]:[]);function G(r){let a=new URLSearchParams;for(let o=0;o+1<r.length;o+=2)a.set(r[o],r[o+1]);return M(a.toString())}function q(r,a){let o=new URLSearchParams;for(let[c,i]of Object.entries({event:r.event,actor:r.actor,target:r.target,...a}))i&&o.set(c,String(i));return r.span&&o.set("since",new Date(Math.floor(Date.now()/6e4-r.span)*6e4).toISOString()),`/api/audit?${o.toString()}`}async function J(r){let a=await(await f("GET",q(r,{limit:D}))).json(),o=a.map(i=>JSON.stringify(i)).join(`
`)+`
`,c=URL.createObjectURL(new Blob([o]));Object.assign(document.createElement("a"),{href:c,download:"audit.jsonl"}).click(),setTimeout(()=>URL.revokeObjectURL(c),1e4),S(v(a.length,"{n} entry is exported.","{n} entries are exported."),"download")}function W({e:r}){let a=U(r.event,{actor:n`<b class="strong"><${g} text=${r.actor} max=${48} /></b>`,target:n`<code><${g} text=${r.target||"–"} max=${80} /></code>`}),o=r.payload&&Object.keys(r.payload).length>0;return n`<li class="entry">
    <span class="what">
      ${a??n`
        <b class="strong"><${g} text=${r.actor} max=${48} /></b>
        ${" "}
        <code><${g} text=${r.target} max=${80} /></code>
      `}
      ${" "}
      <small class="mono faint"><${g} text=${r.event} max=${48} /></small>
      ${o&&n`<details>
        <summary>${e("Details")}</summary>
        <${j} text=${k(JSON.stringify(r.payload,null,2),!0)} label=${e("Details")} />
      </details>`}
    </span>
    <span class="faint no" title=${e("Number of the entry")}>
      ${r.raft_log_index.toLocaleString(m())}
    </span>
    <${E} at=${r.ts} />
  </li>`}function B({f:r,before:a,after:o,last:c,more:i}){let s=y(q(r,{limit:o?D:A,before:a,after:o}),a?[]:["audit"]);return n`<${L} of=${s}>
    ${d=>n`
      ${d.length===0&&!a&&n`<li><${T} icon="audit">${e("No entries match.")}<//></li>`}
      ${[...d].reverse().map(l=>n`<${W} key=${l.raft_log_index} e=${l} />`)}
      ${c&&d.length===A&&n`<li class="entry">
        <button type="button" class="small" onClick=${()=>i(d[0].raft_log_index)}>
          ${e("Earlier entries")}
        </button>
      </li>`}
    `}
  <//>`}function V({f:r,set:a}){let[o,c]=h(r);_(()=>c(r),[$(r).join(" ")]);let i=(s,d,l)=>n`<${R} label=${d}>
      ${p=>n`<input
          id=${p}
          type=${s==="actor"?"search":"text"}
          value=${o[s]}
          placeholder=${l}
          spellcheck="false"
          maxlength="128"
          onInput=${P(F=>c({...o,[s]:F}))} />`}
    <//>`;return n`<form
    class="filters"
    aria-label=${e("Filters")}
    onSubmit=${s=>{s.preventDefault(),a(o)}}>
    ${i("actor",e("Who"),"")} ${i("event",e("What"),"device_*")}
    ${i("target",e("To what"),"")}
    <button type="submit"><${u} of="filter" />${e("Filter")}</button>
    <div class="seg" role="group" aria-label=${e("Time")}>
      ${I.map(s=>n`<button
            type="button"
            aria-pressed=${r.span===s.span}
            onClick=${()=>a({...o,span:s.span})}>
            ${s.title}
          </button>`)}
    </div>
  </form>`}function X({rest:r}){let a=G(r),o=$(a).join(" "),[c,i]=h({at:o,befores:[0]}),s=c.at===o?c.befores:[0];return n`<${O}
    title=${e("Audit")}
    actions=${b("audit:read")&&n`<${N} run=${()=>J(a)}><${u} of="download" />${e("Export")}<//>`}>
    <${V} f=${a} set=${d=>w("audit",...$(d))} />
    <section class="box" aria-label=${e("Audit")}>
      <header>
        <h2>${e("Changes, newest first")}</h2>
        <span class="faint">
          ${e("The entries form a hash chain: nobody can remove or alter one unnoticed.")}
        </span>
      </header>
      <ul class="rows entries">
        ${s.map((d,l)=>n`<${B}
              key=${o+d}
              f=${a}
              before=${d}
              after=${l+1<s.length?s[l+1]-1:0}
              last=${l===s.length-1}
              more=${p=>i({at:o,befores:[...s,p]})} />`)}
      </ul>
    </section>
  <//>`}export{X as default};
