import{e as f,f as I,g as K,h as M,i as O,j as R,k as C,l as P}from"./chunk-6RX6KHIC.js";import"./chunk-ZAOT4YSA.js";import"./chunk-COBE4HLW.js";import"./chunk-43UXHYUF.js";import{$ as D,I as e,J as y,L,T as r,V as _,Y as W,Z as Q,j as q,l as E,p as A,q as b,r as T,s as v,u}from"./chunk-DX5UZMM6.js";import{h as a,i as p,j as S}from"./chunk-7KQRHSI2.js";var J=s=>s.response==="approve"?a("Approved by {who}",{who:u(s.by)}):s.response==="approve_for_session"?a("Approved for the session by {who}",{who:u(s.by)}):s.response==="reject"?a("Rejected by {who}",{who:u(s.by)}):s.reason==="timeout"?a("Refused: nobody answered in time"):a("Withdrawn: the call has ended");function z(){let s=v(A("sessions:read")?"/v1/sessions?limit=100":null,["sessions"]);return new Map((s.data?.sessions??[]).map(o=>[o.id,o.title]))}function U({id:s,titles:o}){let i=s.split("::agent::")[0],d=o.get(i);return d===void 0?e`<${r} text=${s} max=${40} />`:e`<a href=${b("chat",s)}><${r} text=${d||s} max=${60} /></a>`}function B({p:s,titles:o}){let i=s.response?.startsWith("approve")?"good":"off";return e`<section class="ask large past" aria-label=${a("An answered question")}>
    <header><h2 tabindex="-1"><${r} text=${f(s)} /></h2></header>
    <div class="body">
      <p class="flex">
        <span class=${"state "+i}><span class=${"dot "+i}></span>${J(s)}</span>
        <span class="faint"><${_} at=${s.at} /></span>
      </p>
      ${s.feedback&&e`<p class="quoted">
        ${p("The model was told: {reason}",{reason:e`<${r} text=${s.feedback} max=${2e3} />`})}
      </p>`}
      <dl>
        <dt>${a("Session")}</dt>
        <dd><${U} id=${s.session_id} titles=${o} /></dd>
        <dt>${a("Server")}</dt>
        <dd>${s.server?e`<${r} text=${s.server} max=${64} />`:a("built into yaya")}</dd>
        <dt>${a("In short")}</dt>
        <dd><${r} text=${s.brief} max=${1e3} /></dd>
      </dl>
      ${A("audit:read")&&e`<p class="muted">
        ${p("{traffic} has the calls that ran with their arguments and results.",{traffic:e`<a href=${b("traffic")}>${a("Traffic")}</a>`})}
      </p>`}
    </div>
  </section>`}var H=({id:s,now:o,who:i,end:d,what:m,line:l})=>e`<a class="it" href=${b("approvals",s)} aria-current=${o?"true":void 0}>
    <span class="flex">
      <span class="cut">${i}</span><span class="end nw small">${d}</span>
    </span>
    <span class="cut blk small">${m}</span><span class="cut blk small faint mono">${l}</span>
  </a>`;function F({asks:s,past:o,id:i}){let d=z(),m=M(),l=C(s),x=E(null),w=o.find(t=>t.id===i),$=l.findIndex(([,t])=>t.some(n=>n.id===i));$<0&&!w&&l.length&&($=0);let h=[...l.map(([,t])=>t[0].id),...o.map(t=>t.id)],j=$>=0?$:h.indexOf(i),c=h[j]??"",k=t=>{let n=h[Math.max(0,Math.min(h.length-1,j+t))];n&&n!==c&&T("approvals",n)},N=E(c);q(()=>{let t=document.activeElement;N.current!==c&&(t===document.body||x.current?.contains(t))&&x.current?.querySelector("h2[tabindex]")?.focus({preventScroll:!0}),N.current=c},[c]),q(()=>{let t=n=>{!L.value||n.ctrlKey||n.metaKey||n.altKey||n.defaultPrevented||n.target instanceof HTMLElement&&["INPUT","TEXTAREA"].includes(n.target.tagName)||document.querySelector("dialog[open]")||!["j","k"].includes(n.key)||(n.preventDefault(),k(n.key==="j"?1:-1))};return addEventListener("keydown",t),()=>removeEventListener("keydown",t)});let V=t=>e`
    <b><${U} id=${t.session_id} titles=${d} /></b>
    <${y} of="right" />
    <span>
      ${t.server?p("{tool} of the server {server}",{tool:e`<b><${r} text=${f(t)} /></b>`,server:e`<${r} text=${t.server} max=${64} />`}):p("{tool}, built into yaya",{tool:e`<b><${r} text=${t.tool_name} /></b>`})}
    </span>
    ${t.node&&e`<span class="badge">
      ${p("on {node}",{node:e`<${r} text=${t.node} max=${63} />`})}
    </span>`}
  `,g=$>=0?l[$][1]:null;return e`<div class=${c?"inbox open":"inbox"} ref=${x}>
    <nav class="list" aria-label=${a("Questions")}>
      ${l.length>0&&e`<h2>${a("Waiting")}</h2>`}
      ${l.map(([t,n],X)=>e`<${H}
            key=${t}
            id=${n[0].id}
            now=${X===$}
            who=${e`
              <b><${r} text=${f(n[0])} /></b> <span class="faint small">
                ${n[0].server||"yaya"}
              </span>
            `}
            end=${e`<span class=${O(n[0].deadline,m)}>
              ${K(n[0].deadline,m)}
            </span>`}
            what=${d.get(n[0].session_id)||u(n[0].session_id)}
            line=${n.length>1?S(n.length,"{n} time the same question","{n} times the same question"):I(n[0])} />`)}
      ${o.length>0&&e`<h2>${a("Ended")}</h2>`}
      ${o.slice(0,100).map(t=>e`<${H}
              key=${t.id}
              id=${t.id}
              now=${t.id===c}
              who=${e`
                <b><${r} text=${f(t)} /></b> <span class="faint small">
                  ${t.server||"yaya"}
                </span>
              `}
              end=${e`<span class="faint"><${_} at=${t.at} /></span>`}
              what=${J(t)}
              line=${u(t.brief)} />`)}
    </nav>
    <div class="detail">
      ${g?e`
            ${l.length>1&&e`<div class="flex pager phone">
              <span class="faint">${a("{n} of {all}",{n:$+1,all:l.length})}</span>
              <button
                type="button"
                class="quiet sq end"
                aria-label=${a("Previous question")}
                disabled=${$===0}
                onClick=${()=>k(-1)}>
                <${y} of="up" />
              </button>
              <button
                type="button"
                class="quiet sq"
                aria-label=${a("Next question")}
                disabled=${$===l.length-1}
                onClick=${()=>k(1)}>
                <${y} of="down" />
              </button>
            </div>`}
            <${P}
              key=${l[$][0]}
              large
              only
              asks=${g}
              where=${V(g[0])}
              among=${R(s)+c}
              done=${()=>T("approvals")} />
          `:w?e`<${B} p=${w} titles=${d} />`:e`<${Q} icon="check">
              ${a("No calls wait for approval.")}
              ${o.length>0&&e`<br />${a("Choose one of those that have ended to see how.")}`}
            <//>`}
    </div>
  </div>`}function G({rest:[s=""]}){let o=v("/api/approvals",["approvals"]),i=v("/api/approvals/answered",["approvals"]);return e`<${W}
    bare
    title=${a("Approvals")}
    actions=${e`<span class="faint small nophone">
      ${p("{j} {k} move",{j:e`<kbd>J</kbd>`,k:e`<kbd>K</kbd>`})}
    </span>`}>
    <${D} of=${o}>
      ${d=>e`<${F} asks=${d} past=${i.data??[]} id=${s} />`}
    <//>
  <//>`}export{G as default,J as outcome};
