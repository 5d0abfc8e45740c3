import{a as ue}from"./chunk-YUYQFW6M.js";import{a as D,b as de,d as pe,f as fe}from"./chunk-GSL4UUDS.js";import{a as J}from"./chunk-43UXHYUF.js";import{A as Y,B as ce,I as o,J as p,L as U,S as he,T as g,U as T,X as me,a as ne,c as oe,ca as $e,d as se,da as ge,h as w,j as A,k as re,l as H,p as ae,q as O,s as ie,t as le,u as c,x as M}from"./chunk-4UBMOJ6S.js";import{h as n,i as h,j as _}from"./chunk-7KQRHSI2.js";var v=({icon:e="terminal",head:t,note:s,copied:r,children:a})=>o`<div class="exact">
    <header>
      <${p} of=${e} />
      <span class="grow">${t}</span>
      ${s&&o`<span class="faint nophone">${s}</span>`}
      ${r!==void 0&&o`<${ue} text=${r} label=${n("Copy")} />`}
    </header>
    ${a}
  </div>`,R=({text:e,label:t})=>o`<pre tabindex="0" role="group" aria-label=${t}>${de(e)}</pre>`;function Ie({of:e}){let t=Object.entries(e);return t.length?o`<dl class="args">
    ${t.map(([s,r])=>{let a=typeof r=="string"?c(r,!0):M(r);return o`
        <dt><bdi>${c(s)}</bdi></dt>
        <dd class=${typeof r=="string"&&!/\n/.test(r)?"":"mono"}>
          ${typeof r=="string"?a:D(a,"json")}
        </dd>
      `})}
  </dl>`:o`<p class="faint args">${n("No arguments.")}</p>`}var ye=e=>typeof e=="object"&&e!==null&&!Array.isArray(e),xe=({of:e})=>ye(e)?o`<${Ie} of=${e} />`:o`<pre tabindex="0" role="group" aria-label=${n("Arguments, all of them")}>
        ${D(M(e),"json")}
      </pre>`;function be({of:e}){let t=ye(e)?Object.keys(e).length:1;return o`<details class="tc">
    <summary>
      <${p} of="file" />
      <span class="strong">${n("All arguments")}</span>
      <span class="stat">
        ${_(t,"{n} field, nothing hidden","{n} fields, nothing hidden")}
      </span>
      <${p} of="right" />
    </summary>
    <pre tabindex="0" role="group" aria-label=${n("Arguments, all of them")}>
      ${D(M(e),"json")}
    </pre>
  </details>`}function S(e){let t=e.params??{};return y(e)&&typeof t.url=="string"?t.url:""}function y(e){let t=e.params??{};return e.tool_name!=="sandbox_host"||typeof t.host!="string"?"":`${t.host.includes(":")?`[${t.host}]`:t.host}:${t.port}`}function we(e){let t=c(y(e)).slice(0,300);return S(e)?n("May the agent read from {host}?",{host:t}):n("May the command reach {host}?",{host:t})}function ve({a:e,at:t}){let s=e.params??{};if(S(e)){let a=c(S(e),!0);return o`
      <p>
        ${n("The agent wants to read this address, and the host is not on your list. The address can tell the host what the agent has read.")}
      </p>
      <${v} icon="globe" head=${n("Would read")} copied=${a}>
        <${R} text=${a} label=${n("The address, all of it")} />
      <//>
    `}let r=c(s.command,!0);return o`
    <p>
      ${n("The command runs in the sandbox, and the host is not on its list. It can send there everything that it can read.")}
    </p>
    <${v} head=${t(s.cwd)} copied=${r}>
      <${R} text=${r} label=${n("The command, all of it")} />
    <//>
  `}var Ce=["shell","verify","diagram"],Me=10;function G(e){let t=e.params??{};return!e.server&&Ce.includes(e.tool_name)&&typeof t.sandbox=="string"?t:null}var ke=e=>e.sandbox?.startsWith("profile ")??!1,q=e=>{let t=e.params??{},s=i=>typeof t[i]=="string"?String(t[i]):"";if(e.server)return"";if(e.tool_name!=="edit")return e.tool_name==="apply_patch"?s("patch"):"";if(!s("path")||t.replace_all)return"";let r=(i,d)=>s(d)&&s(d).replace(/\n$/,"").replace(/^/gm,i)+`
`;return`*** Begin Patch
*** Update File: ${s("path").replaceAll(`
`," ")}
@@
${r("-","old_text")}${r("+","new_text")}*** End Patch
`},_e=e=>{let t=e.params??{};return!e.server&&e.tool_name==="propose_plan"&&typeof t.plan=="string"?t.plan:""},F=e=>e.tool_name==="folder_trust"&&!!e.params?.folder,De=e=>e.server&&e.tool_name.startsWith(e.server+"__")?e.tool_name.slice(e.server.length+2):e.tool_name;function Te(e){let t={once:n("Approve once"),always:n("Approve in this session"),no:n("Reject …")};if(F(e))return{head:n("Do you trust this folder?"),once:n("Trust"),always:n("Trust for this session"),no:n("Do not trust …")};if(y(e))return{head:we(e),once:n("Allow"),always:n("Allow in this session"),no:n("Refuse …")};let s=G(e);return s&&!ke(s)?{...t,head:n("Run this command outside the sandbox?")}:s&&e.tool_name==="shell"?{...t,head:n("Run this command?")}:s&&e.tool_name==="verify"?{...t,head:n("Run these checks?")}:q(e)?{...t,head:n("Change these files?")}:!e.server&&e.tool_name==="agent"?{...t,head:n("Start a sub-agent?")}:_e(e)?{...t,head:n("Begin the work with this plan?")}:{...t,head:n("Run {tool}?",{tool:c(De(e)).slice(0,160)})}}function at(e){let t=e.params??{},s=q(e);if(s){let a=pe(c(s,!0)),i=a.reduce((u,l)=>u+l.added,0),d=a.reduce((u,l)=>u+l.removed,0);return`${_(a.length,"{n} file","{n} files")}, +${i} −${d}`}if(F(e))return c(t.folder);if(y(e))return c(S(e)||y(e));if(Array.isArray(t.commands))return c(t.commands.join(" && "));if(typeof t.command=="string")return c(t.command);if(typeof t.goal=="string"&&!e.server)return c(t.goal);let r=Object.entries(t).slice(0,4).map(([a,i])=>`${a}: ${typeof i=="string"?i:JSON.stringify(i)}`);return c(r.join(", ")).slice(0,300)}var E=e=>c(`${[e.kind,e.name].filter(Boolean).join(" ")}${e.runs?": "+e.runs:""}`);function Ee({q:e}){let t=(e.added?.length??0)+(e.removed?.length??0)>0,s=(e.items??[]).map(E).join(`
`);return o`
    <p class="mono"><${g} text=${e.folder} max=${4096} /></p>
    ${t&&o`
      <p>${n("You trusted this folder earlier, but its content has changed.")}</p>
      <${T}
        all
        diff
        text=${[...(e.removed??[]).map(r=>"- "+E(r)),...(e.added??[]).map(r=>"+ "+E(r))].join(`
`)}
        label=${n("What has changed")} />
    `}
    ${s?o`
          <p>
            ${n("If you trust it, the following is used without another question, with your rights unless a sandbox is named:")}
          </p>
          <${T} all text=${s} label=${n("What the folder brings, all of it")} />
        `:o`<p>${n("Nothing in it runs by itself.")}</p>`}
    ${(e.allowed?.length??0)>0&&o`
      <p>${n("You gave its servers more access, which they will have again:")}</p>
      <${T}
        all
        text=${(e.allowed??[]).map(E).join(`
`)}
        label=${n("What you have allowed its servers, all of it")} />
    `}
    <p class="muted">
      ${n("You are always asked about changes and commands of the agent. If you trust the folder for one session only, its servers do not start. Without your trust, the agent can only read and search the folder.")}
    </p>
  `}function je({a:e}){let t=e.params??{};if(F(e))return o`<${Ee} q=${t} />`;let s=u=>h("Runs in {folder}",{folder:o`<span class="mono"><${g} text=${u||"."} max=${4096} /></span>`});if(y(e))return o`<${ve} a=${e} at=${s} />`;let r=G(e);if(r){let u=c(typeof r.command=="string"?r.command:(r.commands??[r.source??""]).join(`
`),!0),l=(r.changed_unreviewed??[]).map(j=>c(j.path)).join(`
`);return o`
      <${v} head=${s(r.cwd)} copied=${u}>
        <${R} text=${u} label=${n("The command, all of it")} />
      <//>
      ${(l||r.changed_unknown)&&o`
        <p class="notice">
          ${n("It may run files that calls have changed which nobody approved:")} ${" "}
          ${c(r.changed_unknown)}
        </p>
        ${l&&o`<${T} all text=${l} label=${n("Changed files")} />`}
      `}
      ${r.outside&&r.reason&&o`<p class="quoted">
        ${h("The agent's reason: {reason}",{reason:o`<${g} text=${r.reason} max=${1024} />`})}
      </p>`}
    `}let a=q(e);if(a)return o`<${v} icon="edit" head=${n("Would change")} copied=${c(a,!0)}>
      <${fe} all text=${a} />
    <//>`;let i=_e(e);if(i)return o`<${T} all text=${c(i,!0)} label=${n("The plan, all of it")} />`;let d=o`<b><${g} text=${e.tool_name} /></b>`;return o`<${v}
    icon="tool"
    head=${e.server?h("Would call {tool} of the server {server}",{tool:d,server:o`<b><${g} text=${e.server} max=${64} /></b>`}):h("Would call {tool}, which is built into yaya",{tool:d})}>
    <${xe} of=${e.params} />
  <//>`}function Ae(e){let t=G(e);if(t){let a=o`<span lang="en">${c(t.sandbox)}</span>`;if(!ke(t)){let d=n("Runs a program outside the sandbox, with all rights of your user"),u={icon:"lock",tone:"bad",text:h("Sandbox: {box}",{box:a})};return[{icon:"terminal",tone:"bad",text:d},...t.outside?[]:[u]]}let i=[{icon:"lock",tone:"good",text:h("In the sandbox: {box}",{box:a})}];t.hosts?.length&&i.push({icon:"globe",tone:"warn",text:n("Network: {hosts}",{hosts:Y(t.hosts)})}),t.write?.length&&i.push({icon:"folder",tone:"",text:n("Writes in: {folders}",{folders:Y(t.write)})});for(let d of(t.weaker??[]).slice(0,Me))i.push({icon:"warning",tone:"warn",weak:!0,text:o`<a href=${O("sandbox")}>
          ${h("Not enforced: {what}",{what:o`<span lang="en">${c(d)}</span>`})}
        </a>`});return i}if(F(e)||y(e))return[];if(q(e))return[{icon:"folder",tone:"",text:n("Files of the folder of the session")}];if(!e.server)return e.tool_name==="agent"?[{icon:"agent",tone:"",text:n("Another agent, which asks about its own calls")}]:[];let s=e.claims,r=[];return s?.read_only&&r.push({icon:"search",tone:"",text:n("Only reads"),claim:!0}),s?.destructive&&!s.read_only&&r.push({icon:"trash",tone:"bad",text:n("May delete or overwrite"),claim:!0}),s?.destructive===!1&&!s.read_only&&r.push({icon:"edit",tone:"",text:n("Only adds, and overwrites nothing"),claim:!0}),s?.open_world&&r.push({icon:"globe",tone:"warn",text:n("Reaches things outside the server"),claim:!0}),s?.open_world===!1&&r.push({icon:"server",tone:"",text:n("Stays within the server"),claim:!0}),r.length||r.push({icon:"warning",tone:"warn",text:n("The server does not say what it touches")}),r}var qe=new Map([["good","good"],["warn","busy"],["bad","bad"]]);function Oe({a:e,times:t,large:s}){let a=(ie("/api/approvals/answered",["approvals"]).data??[]).filter(l=>l.digest===e.digest),i=a.filter(l=>l.response?.startsWith("approve")).length,d=a.filter(l=>l.response==="reject").length,u=Ae(e);if(!s){let l=u.filter(m=>m.weak).length,j=u.some(m=>m.claim);return o`<p class="marks small">
      ${u.filter(m=>!m.weak).map(m=>o`<span class=${"badge "+(qe.get(m.tone)??"")}>
              <${p} of=${m.icon} />
              ${m.text}
            </span>`)}
      ${l>0&&o`<a class="badge busy" href=${O("sandbox")}>
        <${p} of="warning" />
        ${_(l,"{n} limit is not enforced","{n} limits are not enforced")}
      </a>`}
      ${j&&o`<span class="faint">${n("as the server says")}</span>`}
      ${t>1&&o`<span class="badge">
        ${n("Asked {n} times: one answer counts for all",{n:t})}
      </span>`}
      <span class="faint">
        ${e.why?h("Rule: {reason}",{reason:o`<${g} text=${e.why} max=${160} />`}):e.server?h("From the server {server}",{server:o`<${g} text=${e.server} max=${64} />`}):n("Built into yaya")}
      </span>
    </p>`}return o`<div class="cols c11 facts">
    ${u.length>0&&o`<div>
      <h3>${n("What it may reach")}</h3>
      <ul class="mini">
        ${u.map(l=>o`<li>
              <span class=${l.tone||"muted"}><${p} of=${l.icon} /></span>
              <span>${l.text}</span>
            </li>`)}
      </ul>
      ${u.some(l=>l.claim)&&o`<p class="faint small">
        ${n("This is what the server says of itself. Nobody has checked it.")}
      </p>`}
    </div>`}
    <div>
      <h3>${n("Why you are asked")}</h3>
      <ul class="mini">
        <li>
          <span class="muted"><${p} of="pin" /></span>
          <span>
            ${e.why?h("Rule: {reason}",{reason:o`<b><${g} text=${e.why} max=${300} /></b>`}):e.server?n("Tools of servers ask, unless a rule allows them"):e.kind==="write"?n("Changes ask, unless a rule allows them"):e.kind==="exec"?n("Commands ask, unless a rule allows them"):n("It always asks")}
          </span>
        </li>
        <li>
          ${e.server?o`
                <span class="muted"><${p} of="server" /></span>
                <span>
                  ${h("From the server {server}",{server:o`<a href=${O("servers",e.server)}>
                      <${g} text=${e.server} max=${64} />
                    </a>`})}
                </span>
              `:o`
                <span class="good"><${p} of="check" /></span>
                <span>${n("Built into yaya, not from a server")}</span>
              `}
        </li>
        ${t>1&&o`<li>
          <span class="muted"><${p} of="queue" /></span>
          <span>${n("Asked {n} times: one answer counts for all",{n:t})}</span>
        </li>`}
        ${(i>0||d>0)&&o`<li>
          <span class="muted"><${p} of="clock" /></span>
          <span>${n("The same call before: approved {yes}, rejected {no}",{yes:i,no:d})}</span>
        </li>`}
      </ul>
    </div>
  </div>`}J("code");J("approvals");function Re(e,t){let s=Math.max(0,Math.ceil((Date.parse(e)-t)/1e3));return`${Math.floor(s/60)}:${String(s%60).padStart(2,"0")}`}function Fe(){let[e,t]=w(Date.now());return A(()=>{let s=setInterval(()=>document.hidden||t(Date.now()),1e3);return()=>clearInterval(s)},[]),e}var Pe=(e,t)=>Date.parse(e)-t<6e4?"bad":"warn",_t=e=>e.map(t=>t.id).join(" ");function Tt(e){let t=new Map;for(let s of e){let r=JSON.stringify([s.digest??s.id,s.session_id]);t.set(r,[...t.get(r)??[],s])}return[...t.entries()]}async function Be(e,t,s){let r=await Promise.allSettled(e.map(i=>oe("POST",`/api/approvals/${se(i.id)}`,{response:t,...t==="reject"&&s&&{feedback:s}}))),a=r.filter(i=>i.status==="rejected");if(le(["approvals"]),a.length===r.length)throw a[0].reason}function jt({asks:e,where:t,among:s,only:r,large:a,done:i}){let d=e[0],u=H(null),[l,j]=w(""),[m,P]=w(!1),[B,Q]=w(!1),[k,X]=w(""),[W,z]=w(null),N=H(!0),I=Fe(),V=ae("approvals:answer");A(()=>(N.current=!0,()=>{N.current=!1}),[]),A(()=>{Q(!1);let f=setTimeout(()=>Q(!0),he);return()=>clearTimeout(f)},[s]);let C=async f=>{if(!(!B||k)){X(f),z(null);try{await Be(e,f,l),N.current&&i?.()}catch($){if(!N.current)return;X(""),z($)}}},L=Date.parse(d.deadline)<=I,Z=()=>{B&&!k&&P(!0)};re(()=>{m&&u.current?.querySelector("input")?.focus()},[m]),A(()=>{let f=$=>{if(!U.value||!V||L||m||$.ctrlKey||$.metaKey||$.altKey||$.defaultPrevented||$.repeat)return;let x=$.target;if(x instanceof HTMLElement&&["INPUT","TEXTAREA","SELECT"].includes(x.tagName)||document.querySelector("dialog[open]")||!r&&!(x instanceof Node&&u.current?.contains(x)))return;let b={y:()=>C("approve"),s:()=>C("approve_for_session"),n:Z}[$.key];b&&($.preventDefault(),b())};return addEventListener("keydown",f),()=>removeEventListener("keydown",f)});let{head:ee,once:Se,always:We,no:Ne}=Te(d),te=!B||!!k||L,K=(f,$,x,b)=>o`<button
      type="button"
      class=${f}
      disabled=${te}
      aria-keyshortcuts=${x}
      onClick=${b?()=>{C(b)}:Z}>
      ${b==="approve"&&o`<${p} of="check" />`}
      ${k&&k===b?n("Sending …"):$} ${U.value&&o`<kbd aria-hidden="true">${x}</kbd>`}
    </button>`;return o`<section
    class=${a?"ask large":"ask"}
    ref=${u}
    aria-label=${n("yaya asks: {question}",{question:ee})}>
    <header>
      <span class="seal"><${p} of="shield" />${n("yaya asks")}</span>
      <h2 tabindex="-1">${ee}</h2>
      <span class=${"flex end left "+Pe(d.deadline,I)}>
        <${p} of="clock" />
        <span>
          ${L?n("Refused: nobody answered in time"):a?h("Refused in {time} if nobody answers",{time:o`<b>${Re(d.deadline,I)}</b>`}):n("Refused in {time}",{time:Re(d.deadline,I)})}
        </span>
      </span>
    </header>
    <div class="body">
      ${t&&o`<p class="chain">${t}</p>`}
      <${je} a=${d} />
      <${Oe} a=${d} times=${e.length} large=${a} />
      <${be} of=${d.params} />
    </div>
    <footer>
      ${W instanceof ne&&W.status===409?o`<p class="notice" role="alert">${ce(W)}</p>`:o`<${me} error=${W} />`}
      ${V?m?o`<form
              class="flex why"
              onKeyDown=${f=>{f.key==="Escape"&&(f.stopPropagation(),P(!1),u.current?.querySelector("h2")?.focus())}}
              onSubmit=${f=>{f.preventDefault(),C("reject")}}>
              <${ge} label=${n("Reason")} hint=${n("The model sees it. It may stay empty.")}>
                ${f=>o`<input id=${f} value=${l} maxlength="16384" onInput=${$e(j)} />`}
              <//>
              <button type="button" onClick=${()=>P(!1)}>${n("Cancel")}</button>
              <button type="submit" class="danger" disabled=${te}>
                ${k?n("Sending …"):n("Reject")}
              </button>
            </form>`:o`
              ${K("primary",Se,"y","approve")}
              ${K("",We,"s","approve_for_session")}
              ${K("danger",Ne,"n","")}
            `:o`<p class="muted">
            ${n("This device can watch but not answer. To change that, use Rights under Devices on the machine that yaya runs on.")}
          </p>`}
    </footer>
  </section>`}export{R as a,xe as b,De as c,at as d,Re as e,Fe as f,Pe as g,_t as h,Tt as i,jt as j};
