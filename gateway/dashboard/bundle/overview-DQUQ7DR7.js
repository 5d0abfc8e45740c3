import{$ as M,E as h,H as O,I as e,J as f,T as r,V as A,W as u,Y as E,Z as H,fa as P,h as S,j as N,o as C,p as c,q as l,s as i}from"./chunk-DX5UZMM6.js";import{h as a,i as k,j as p}from"./chunk-7KQRHSI2.js";var g=8,$=t=>t.state==="ready"||t.state==="degraded",T=t=>["failed","invalid","degraded","waiting","starting","installing"].indexOf(t.state)+1||9,I=t=>t.filter(s=>!["sandbox","mcp-bridge"].includes(s.plugin)&&(s.status==="failed"||s.status==="degraded"&&!s.plugin.startsWith("llm-"))),L=({all:t})=>e`<section class="box" aria-label=${a("Checks")}>
    <header>
      <h2>${a("Checks")}</h2>
      <span class="faint">${a("of yaya itself; yaya doctor says more")}</span>
    </header>
    <ul class="rows">
      ${t.map(s=>e`<li key=${s.plugin+s.summary}>
            <span class=${s.status==="failed"?"ico bad":"ico busy"}>
              <${f} of="warning" />
            </span>
            <span class="two">
              <b><${r} text=${s.plugin} max=${40} /></b>
              <small><${r} text=${s.summary} max=${300} /></small>
            </span>
          </li>`)}
    </ul>
  </section>`,R=({of:t})=>e`<section class="box" aria-label=${a("Sessions")}>
    <header><h2>${a("Sessions")}</h2><a class="end" href=${l("chat")}>${a("All")}</a></header>
    <${M} of=${t}>
      ${s=>s.sessions.length?e`<div class="rows tight">
              ${s.sessions.map(o=>{let n=o.status==="active"?o.state:o.status;return e`<a key=${o.id} href=${l("chat",o.id)}>
                  <${u} state=${n} bare />
                  <span class="cut grow"><${r} text=${o.title||o.id} max=${80} /></span>
                  <small class="faint nw">
                    ${n==="idle"||n==="completed"?e`<${A} at=${o.updated_at} />`:h(n)}
                  </small>
                </a>`})}
            </div>`:e`<${H} icon="session">${a("There are no sessions yet.")}<//>`}
    <//>
  </section>`,V=({all:t})=>e`<section class="box" aria-label=${a("Servers")}>
    <header>
      <h2>${a("Servers")}</h2>
      <span class="faint">
        ${a("{good} of {all} work, with {tools}",{good:t.filter($).length,all:t.length,tools:p(t.filter($).reduce((s,o)=>s+o.tools,0),"{n} tool","{n} tools")})}
      </span>
      <a class="end" href=${l("servers")}>
        ${t.length>g?a("{n} more",{n:t.length-g}):a("All")}
      </a>
    </header>
    <div class="rows tight">
      ${[...t].sort((s,o)=>T(s)-T(o)).slice(0,g).map(s=>e`<a key=${s.name} href=${l("servers",s.name)}>
              <${u} state=${s.state} bare />
              <span class="cut grow">
                <${r} text=${s.name} max=${48} />
                ${!$(s)&&s.reason&&e`${" "}<small class="faint"><${r} text=${s.reason} max=${160} /></small>`}
              </span>
              <small class="faint nw">
                ${$(s)?p(s.tools,"{n} tool","{n} tools"):h(s.state)}
              </small>
            </a>`)}
    </div>
  </section>`;function j(){C.me.use();let t=c("config:read"),s=i(t?"/api/setup":null,["config","servers"]).data,o=i("/v1/sessions?limit=6",["sessions"]),n=i(t?"/api/mcp/servers":null,["servers"]).data,d=i(t?"/api/sandbox":null,["config"]).data,W=i(t?"/api/doctor":null,["plugins","config"]).data,_=i(c("metrics:read")?"/api/metrics":null,["sessions"]).data,{needs:m}=O(),[b,B]=S(null);N(()=>{import("./board-7IHMP3Y2.js").then(B,()=>{})},[]);let v=I(W??[]),x=e`
    ${m.length>0&&e`<section class="box" aria-label=${a("Needs you")}>
      <header><h2>${a("Needs you")}</h2><span class="n warn">${m.length}</span></header>
      <${P} needs=${m} max=${8} act />
    </section>`}
    ${v.length>0&&e`<${L} all=${v} />`}
  `,y=n&&n.length>0&&e`<${V} all=${n} />`,w=e`<${R} of=${o} />`;return e`<${E}
    title=${a("Home")}
    actions=${c("sessions:write")&&e`<a class="button primary" href=${l("chat","new")}>
      <${f} of="session" />
      ${a("New session")}
    </a>`}>
    ${s&&!s.done&&n?.length===0&&e`<p class="notice">
      ${k("No MCP servers are connected yet. {setup}: it takes a minute.",{setup:e`<a href=${l("start")}>${a("Set yaya up")}</a>`})}
    </p>`}
    ${(d?.backend==="off"||d?.status==="failed")&&e`<p class="problem">
      <a href=${l("sandbox")}>${a("Sandbox")}</a> <${r} text=${d.summary} max=${300} />
    </p>`}
    ${b?e`<${b.Board}
          servers=${n}
          connected=${_?.at(-1)?.mcp_sessions}
          left=${x}
          below=${y}
          right=${w} />`:e`<div class="cols c21">
          <div class="col">${x} ${y}</div>
          <div class="col">${w}</div>
        </div>`}
  <//>`}export{j as default};
