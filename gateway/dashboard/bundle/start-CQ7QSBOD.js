import{b as V,c as L,d as S}from"./chunk-F7SQHQRP.js";import"./chunk-FNYZOFRU.js";import{f as M}from"./chunk-ENLNMQ6T.js";import{b as N,c as P}from"./chunk-2TAB5IYM.js";import{b as I}from"./chunk-WKYUETWH.js";import"./chunk-5YHDVP7A.js";import"./chunk-ORFBRK3V.js";import"./chunk-ZAOT4YSA.js";import{a as O}from"./chunk-O7JAVTGA.js";import"./chunk-IY4UA5QU.js";import"./chunk-QK6JMVOZ.js";import{a as y}from"./chunk-43UXHYUF.js";import{$ as q,I as t,J as u,N as E,T as $,W as _,Y as D,Z as F,ba as v,c as b,d as k,h as f,j as C,p as h,q as d,r as A,s as m,u as x,z as T}from"./chunk-DX5UZMM6.js";import{h as e,i as g,j as w}from"./chunk-7KQRHSI2.js";y("servers");y("models");y("start");var p=[{at:"",title:e("Servers"),View:W},{at:"model",title:e("Model"),View:z},{at:"clients",title:e("Clients"),View:B},{at:"call",title:e("First call"),View:H}];function W(){let l=m("/api/mcp/import",["servers"]),a=m("/api/mcp/servers",["servers"]).data??[],[c,r]=f(null);return t`
    <h2>${e("The servers that you use already")}</h2>
    <p class="muted">
      ${e("yaya can run them once for all your clients. The files of your clients stay as they are. Nothing starts before you have seen its command.")}
    </p>
    <${q} of=${l}>
      ${n=>n.length?n.map(s=>{let i=s.servers.filter(o=>!o.known).length;return t`<section class="box" key=${s.path} aria-label=${x(s.client)}>
                <header>
                  <${u} of="client" />
                  <h2>${x(s.client)}</h2>
                  <small class="faint mono"><${$} text=${s.path} max=${80} /></small>
                  ${h("config:write")&&i>0&&t`<span class="end">
                    <${v}
                      kind="small"
                      run=${async()=>{let o=await b("POST","/api/mcp/import",{client:s.client});o.length&&r(o)}}>
                      ${w(i,"Import {n} server","Import {n} servers")}
                    <//>
                  </span>`}
                </header>
                <ul class="rows tight">
                  ${s.servers.map(o=>t`<li key=${o.name}>
                        <span class="two">
                          <b class="strong"><${$} text=${o.name} max=${48} /></b>
                          <small class="mono cut"><${$} text=${o.endpoint} max=${160} /></small>
                        </span>
                        ${o.known&&t`<span class="badge good">${e("yaya has it")}</span>`}
                      </li>`)}
                </ul>
              </section>`}):t`<${F} icon="server">${e("No other client on this machine has servers.")}<//>`}
    <//>
    ${a.length>0&&t`<section class="box" aria-label=${e("Servers of yaya")}>
      <header><h2>${e("Servers of yaya")}</h2></header>
      <div class="rows tight">
        ${a.map(n=>t`<a key=${n.name} href=${d("servers",n.name)}>
              <span class="grow cut"><${$} text=${n.name} max=${48} /></span>
              <${_} state=${n.state} />
            </a>`)}
      </div>
    </section>`}
    <p><a href=${d("servers","","new")}>${e("Add a server by hand")}</a></p>
    ${c&&t`<${O}
      changes=${c}
      cancel=${()=>r(null)}
      done=${()=>{E(w(c.length,"{n} server is imported and starts now.","{n} servers are imported and start now.")),r(null)}} />`}
  `}function z(){let a=m("/api/llm-providers",["config","plugins"]).data?.find(c=>c.active);return t`
    <h2>${e("A model for the agents of yaya")}</h2>
    <p class="muted">
      ${e("Your MCP clients bring their own model. Sessions of yaya need one: a service with a key, or one on this machine.")}
    </p>
    ${a&&t`<p>
      ${g("{name} is in use.",{name:t`<b><${$} text=${P(a)} max=${64} /></b>`})}
      ${" "}
      ${a.plugin==="llm-echo"&&e("It works offline and repeats what you write: enough to look around.")}
    </p>`}
    ${h("config:write")&&t`<section class="box" aria-label=${e("Add a provider")}>
      <div class="body"><${N} activate /></div>
    </section>`}
  `}function B(){let l=m(S()?"/api/clients":null,[]);return t`
    <h2>${e("Clients that use yaya")}</h2>
    <p class="muted">
      ${e("A client that is connected reaches all servers through yaya. Each change of its file is shown before it is made.")}
    </p>
    ${S()&&t`<${V} of=${l} />`}
    <${L} start="Claude Code" />
  `}function H(){let l=h("audit:read"),[a,c]=f(void 0),r=m("/api/setup",["config"]).data,[n,s]=f(!1);return C(()=>{if(!l)return;let i=new I({},200,()=>c(i.list.findLast(o=>o.origin==="mcp"&&o.outcome==="ok")));return()=>i.close()},[]),t`
    <h2>${e("The first call")}</h2>
    ${a?t`<p class="box body done" role="status">
          <span class="ico good"><${u} of="check" /></span>
          <span>
            ${g("{client} has called {tool} through yaya in {time}: everything works.",{client:t`<b><${$} text=${a.client||e("A client")} max=${48} /></b>`,tool:t`<a href=${d("traffic","",String(a.id))}>
                <${$} text=${a.name||a.tool} max=${64} />
              </a>`,time:T(a.took_ms)})}
          </span>
        </p>`:l?t`<p class="box body done" role="status">
            <span class="ico busy"><${u} of="clock" /></span>
            <span>
              ${e("Waiting for a call. Restart the client that you have connected, and ask it for something that needs one of your tools.")}
            </span>
          </p>`:t`<p class="notice">${e("Calls are shown to those who may read the audit log.")}</p>`}
    <p class="muted">
      ${e("Every call is in Traffic, with its arguments, its result and the client that made it.")}
    </p>
    <h3>${e("Elsewhere")}</h3>
    <p class="muted">
      ${r?.remote?e("Watch and steer from a phone or another machine."):e("Other machines cannot reach yaya now: it listens only on this machine. Start it with TLS, or behind a proxy: docs/TLS.md says how.")}
    </p>
    ${h("devices:approve")&&t`<button type="button" onClick=${()=>s(!0)}>
      <${u} of="device" />
      ${e("Add a device")}
    </button>`}
    ${n&&t`<${M} url=${r?.remote?r.url:""} done=${()=>s(!1)} />`}
  `}function R({rest:[l=""]}){let a=Math.max(0,p.findIndex(s=>s.at===l)),c=p[a],r=s=>d("start",...p[s].at?[p[s].at]:[]),n=async()=>{h("config:write")&&await b("PATCH",`/api/config/${k("_meta.setup_done_at")}`,{value:new Date().toISOString()}),A("")};return t`<${D}
    title=${e("Set yaya up")}
    actions=${a<p.length-1&&t`<${v} kind="quiet" run=${n}>${e("Skip setup")}<//>`}>
    <div class="wizard">
      <ol class="way" aria-label=${e("Steps")}>
        ${p.map((s,i)=>t`<li key=${s.at} class=${i<a?"past":""}>
              <a href=${r(i)} aria-current=${i===a?"step":void 0}>
                <span class="no" aria-hidden="true">${i+1}</span>${s.title}
              </a>
            </li>`)}
      </ol>
      <${c.View} />
      <div class="buttons ends">
        ${a>0&&t`<a class="button quiet" href=${r(a-1)}>${e("Back")}</a>`}
        <span class="grow"></span>
        ${a<p.length-1?t`<a class="button primary" href=${r(a+1)}>
              ${e("Next: {step}",{step:p[a+1].title})}
            </a>`:t`<${v} kind="primary" run=${n}>${e("Finish")}<//>`}
      </div>
    </div>
  <//>`}export{R as default};
