import{a as o}from"./chunk-43UXHYUF.js";import{$ as b,I as l,T as r,V as n,W as c,Y as w,Z as d,ba as f,c as i,d as h,p as m,q as p,s as u,u as g}from"./chunk-DX5UZMM6.js";import{e as $,h as e}from"./chunk-7KQRHSI2.js";o("servers");o("models");var x=({all:s})=>l`<section class="box" aria-label=${e("Agents")}>
    <header><h2>${e("Agents")}</h2><span class="faint">${s.length}</span></header>
    ${s.length?l`<table class="list" role="table" aria-label=${e("Agents")}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${e("Agent")}</th>
              <th role="columnheader">${e("State")}</th>
              <th role="columnheader" class="wide">${e("Kernel")}</th>
              <th role="columnheader">${e("Since")}</th>
              <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${s.map(t=>l`<tr role="row" key=${t.id}>
                <td role="cell" class="p1">
                  <span class="two">
                    <a class="strong" href=${p("chat",t.id)}>
                      <${r} text=${t.id} max=${60} />
                    </a>
                    ${t.skill&&l`<small><${r} text=${t.skill} max=${40} /></small>`}
                  </span>
                </td>
                <td role="cell" class="p2"><${c} state=${t.status} /></td>
                <td role="cell" class="wide">
                  <code><${r} text=${t.kernel_id} max=${24} /></code>
                </td>
                <td role="cell"><${n} at=${t.ts} /></td>
                <td role="cell" class="p3">
                  ${t.status==="running"&&m("sessions:write")&&l`<span class="acts">
                    <${f}
                      kind="small"
                      label=${e("Stop {name}",{name:g(t.id)})}
                      run=${()=>i("POST",`/v1/sessions/${h(t.id)}/cancel`)}>
                      ${e("Stop")}
                    <//>
                  </span>`}
                </td>
              </tr>`)}
          </tbody>
        </table>`:l`<${d} icon="agent">
          ${e("No agents run. An agent of a session appears here while it works.")}
        <//>`}
  </section>`,a=s=>s===void 0?"–":s.toLocaleString($(),{maximumFractionDigits:2}),y=({all:s})=>l`<section class="box" aria-label=${e("Kernels")}>
    <header>
      <h2>${e("Kernels")}</h2>
      <span class="faint">${e("Processes that run agents, with their last report.")}</span>
    </header>
    ${s.length?l`<table class="list" role="table" aria-label=${e("Kernels")}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${e("Kernel")}</th>
              <th role="columnheader">${e("State")}</th>
              <th role="columnheader" class="num">${e("Agents")}</th>
              <th role="columnheader" class="num wide">${e("Entropy")}</th>
              <th role="columnheader" class="num wide">${e("Drift")}</th>
              <th role="columnheader" class="num wide">${e("Memories")}</th>
              <th role="columnheader">${e("Seen")}</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${s.map(t=>l`<tr role="row" key=${t.kernel_id}>
                <td role="cell" class="p1">
                  <span class="two">
                    <code class="strong"><${r} text=${t.kernel_id} max=${32} /></code>
                    <small><${r} text=${t.capabilities.join(", ")} max=${120} /></small>
                  </span>
                </td>
                <td role="cell" class="p2"><${c} state=${t.status} /></td>
                <td role="cell" class="num">${a(t.heartbeat?.agent_count)}</td>
                <td role="cell" class="num wide">${a(t.heartbeat?.entropy)}</td>
                <td role="cell" class="num wide">${a(t.heartbeat?.drift_score)}</td>
                <td role="cell" class="num wide">${a(t.heartbeat?.memory_count)}</td>
                <td role="cell" class="p3"><${n} at=${t.last_seen} /></td>
              </tr>`)}
          </tbody>
        </table>`:l`<${d}>${e("There are no kernels.")}<//>`}
  </section>`;function A(){let s=u("/api/cluster",["agents"]);return l`<${w} title=${e("Agents")}>
    <${b} of=${s}>
      ${t=>l`
        <${x} all=${t.agents} />
        <${y} all=${t.kernels} />
      `}
    <//>
  <//>`}export{A as default};
