import{a as ue}from"./chunk-ZAOT4YSA.js";import{a as E,b as de,d as pe,f as he}from"./chunk-COBE4HLW.js";import{a as Y}from"./chunk-43UXHYUF.js";import{A as U,B as ce,I as s,J as h,L as J,S as fe,T as w,U as j,X as me,a as ne,c as oe,ca as $e,d as se,da as ge,h as k,j as A,k as re,l as H,p as ae,q as R,s as ie,t as le,u,x as D}from"./chunk-DX5UZMM6.js";import{h as n,i as m,j as O}from"./chunk-7KQRHSI2.js";var _=({icon:e="terminal",head:t,note:r,copied:o,children:a})=>s`<div class="exact">
    <header>
      <${h} of=${e} />
      <span class="grow">${t}</span>
      ${r&&s`<span class="faint nophone">${r}</span>`}
      ${o!==void 0&&s`<${ue} text=${o} label=${n("Copy")} />`}
    </header>
    ${a}
  </div>`,S=({text:e,label:t})=>s`<pre tabindex="0" role="group" aria-label=${t}>${de(e)}</pre>`;function De({of:e}){let t=Object.entries(e);return t.length?s`<dl class="args">
    ${t.map(([r,o])=>{let a=typeof o=="string"?u(o,!0):D(o);return s`
        <dt><bdi>${u(r)}</bdi></dt>
        <dd class=${typeof o=="string"&&!/\n/.test(o)?"":"mono"}>
          ${typeof o=="string"?a:E(a,"json")}
        </dd>
      `})}
  </dl>`:s`<p class="faint args">${n("No arguments.")}</p>`}var ye=e=>typeof e=="object"&&e!==null&&!Array.isArray(e),we=({of:e})=>ye(e)?s`<${De} of=${e} />`:s`<pre tabindex="0" role="group" aria-label=${n("Arguments, all of them")}>
        ${E(D(e),"json")}
      </pre>`;function be({of:e}){let t=ye(e)?Object.keys(e).length:1;return s`<details class="tc">
    <summary>
      <${h} of="file" />
      <span class="strong">${n("All arguments")}</span>
      <span class="stat">
        ${O(t,"{n} field, nothing hidden","{n} fields, nothing hidden")}
      </span>
      <${h} of="right" />
    </summary>
    <pre tabindex="0" role="group" aria-label=${n("Arguments, all of them")}>
      ${E(D(e),"json")}
    </pre>
  </details>`}function M(e){let t=e.params??{};return b(e)&&typeof t.url=="string"?t.url:""}function b(e){let t=e.params??{};return e.tool_name!=="sandbox_host"||typeof t.host!="string"?"":`${t.host.includes(":")?`[${t.host}]`:t.host}:${t.port}`}function ve(e){let t=u(b(e)).slice(0,300);return M(e)?n("May the agent read from {host}?",{host:t}):n("May the command reach {host}?",{host:t})}function xe({a:e,at:t}){let r=e.params??{};if(M(e)){let a=u(M(e),!0);return s`
      <p>
        ${n("The agent wants to read this address, and the host is not on your list. The address can tell the host what the agent has read.")}
      </p>
      <${_} icon="globe" head=${n("Would read")} copied=${a}>
        <${S} text=${a} label=${n("The address, all of it")} />
      <//>
    `}let o=u(r.command,!0);return s`
    <p>
      ${n("The command runs in the sandbox, and the host is not on its list. It can send there everything that it can read.")}
    </p>
    <${_} head=${t(r.cwd)} copied=${o}>
      <${S} text=${o} label=${n("The command, all of it")} />
    <//>
  `}var ke=new WeakMap;function Ee(e,t){if(typeof t!="object"||t===null)return"";let r=t,o=i=>typeof r[i]=="string"?String(r[i]):"";if(e==="apply_patch")return o("patch");if(e!=="edit"||!o("path"))return"";let a=ke.get(r);if(a===void 0){let i=o("path").replaceAll(`
`," "),c=qe(_e(o("old_text")),_e(o("new_text")));a=`*** Begin Patch
*** Update File: ${i}
@@
${c.join(`
`)}
*** End Patch
`,ke.set(r,a)}return a}var Te=(e,t)=>e==="edit"&&(t??{}).replace_all?"":Ee(e,t),_e=e=>e.match(/[^\n]*\n|[^\n]+$/g)??[];function qe(e,t){let r=Math.min(e.length,t.length),o=0;for(;o<r&&e[o]===t[o];)o++;let a=0;for(;a<r-o&&e.at(-1-a)===t.at(-1-a);)a++;let i=d=>l=>d+l.replace(/\n$/,""),c=e.length-a;return[...e.slice(0,o).map(i(" ")),...Pe(e.slice(o,c),t.slice(o,t.length-a),i),...e.slice(c).map(i(" "))]}function Pe(e,t,r){let[o,a]=[r("-"),r("+")];if(e.length*t.length>25e4)return[...e.map(o),...t.map(a)];let i=t.length+1,c=new Uint32Array((e.length+1)*i);for(let p=e.length-1;p>=0;p--)for(let y=t.length-1;y>=0;y--)c[p*i+y]=e[p]===t[y]?c[(p+1)*i+y+1]+1:Math.max(c[(p+1)*i+y],c[p*i+y+1]);let d=[],[l,$]=[0,0];for(;l<e.length||$<t.length;)l<e.length&&$<t.length&&e[l]===t[$]?(d.push(r(" ")(e[l++])),$++):l<e.length&&($===t.length||c[(l+1)*i+$]>=c[l*i+$+1])?d.push(o(e[l++])):d.push(a(t[$++]));return d}var Fe=["shell","verify","diagram"],Be=10;function G(e){let t=e.params??{};return!e.server&&Fe.includes(e.tool_name)&&typeof t.sandbox=="string"?t:null}var Oe=e=>e.sandbox?.startsWith("profile ")??!1,P=e=>e.server?"":Te(e.tool_name,e.params),je=e=>{let t=e.params??{};return!e.server&&e.tool_name==="propose_plan"&&typeof t.plan=="string"?t.plan:""},F=e=>e.tool_name==="folder_trust"&&!!e.params?.folder,Le=e=>e.server&&e.tool_name.startsWith(e.server+"__")?e.tool_name.slice(e.server.length+2):e.tool_name;function Ae(e){let t={once:n("Approve once"),always:n("Approve in this session"),no:n("Reject …")};if(F(e))return{head:n("Do you trust this folder?"),once:n("Trust"),always:n("Trust for this session"),no:n("Do not trust …")};if(b(e))return{head:ve(e),once:n("Allow"),always:n("Allow in this session"),no:n("Refuse …")};let r=G(e);return r&&!Oe(r)?{...t,head:n("Run this command outside the sandbox?")}:r&&e.tool_name==="shell"?{...t,head:n("Run this command?")}:r&&e.tool_name==="verify"?{...t,head:n("Run these checks?")}:P(e)?{...t,head:n("Change these files?")}:!e.server&&e.tool_name==="agent"?{...t,head:n("Start a sub-agent?")}:je(e)?{...t,head:n("Begin the work with this plan?")}:{...t,head:n("Run {tool}?",{tool:u(Le(e)).slice(0,160)})}}function ft(e){let t=e.params??{},r=P(e);if(r){let a=pe(u(r,!0)),i=a.reduce((d,l)=>d+l.added,0),c=a.reduce((d,l)=>d+l.removed,0);return`${O(a.length,"{n} file","{n} files")}, +${i} −${c}`}if(F(e))return u(t.folder);if(b(e))return u(M(e)||b(e));if(Array.isArray(t.commands))return u(t.commands.join(" && "));if(typeof t.command=="string")return u(t.command);if(typeof t.goal=="string"&&!e.server)return u(t.goal);let o=Object.entries(t).slice(0,4).map(([a,i])=>`${a}: ${typeof i=="string"?i:JSON.stringify(i)}`);return u(o.join(", ")).slice(0,300)}var q=e=>u(`${[e.kind,e.name].filter(Boolean).join(" ")}${e.runs?": "+e.runs:""}`);function Ke({q:e}){let t=(e.added?.length??0)+(e.removed?.length??0)>0,r=(e.items??[]).map(q).join(`
`);return s`
    <p class="mono"><${w} text=${e.folder} max=${4096} /></p>
    ${t&&s`
      <p>${n("You trusted this folder earlier, but its content has changed.")}</p>
      <${j}
        all
        diff
        text=${[...(e.removed??[]).map(o=>"- "+q(o)),...(e.added??[]).map(o=>"+ "+q(o))].join(`
`)}
        label=${n("What has changed")} />
    `}
    ${r?s`
          <p>
            ${n("If you trust it, the following is used, with your rights unless a sandbox is named:")}
          </p>
          <${j} all text=${r} label=${n("What the folder brings, all of it")} />
        `:s`<p>${n("Nothing in it runs by itself.")}</p>`}
    ${(e.allowed?.length??0)>0&&s`
      <p>${n("You gave its servers more access, which they will have again:")}</p>
      <${j}
        all
        text=${(e.allowed??[]).map(q).join(`
`)}
        label=${n("What you have allowed its servers, all of it")} />
    `}
    <p class="muted">
      ${n("You are still asked about changes and commands of the agent, and before it starts another agent. If you trust the folder for one session only, its servers do not start. Without your trust, the agent can only read and search the folder.")}
    </p>
  `}function Re({a:e}){let t=e.params??{};if(F(e))return s`<${Ke} q=${t} />`;let r=d=>m("Runs in {folder}",{folder:s`<span class="mono"><${w} text=${d||"."} max=${4096} /></span>`});if(b(e))return s`<${xe} a=${e} at=${r} />`;let o=G(e);if(o){let d=u(typeof o.command=="string"?o.command:(o.commands??[o.source??""]).join(`
`),!0),l=(o.changed_unreviewed??[]).map($=>u($.path)).join(`
`);return s`
      <${_} head=${r(o.cwd)} copied=${d}>
        <${S} text=${d} label=${n("The command, all of it")} />
      <//>
      ${(l||o.changed_unknown)&&s`
        <p class="notice">
          ${n("It may run files that calls have changed which nobody approved:")} ${" "}
          ${u(o.changed_unknown)}
        </p>
        ${l&&s`<${j} all text=${l} label=${n("Changed files")} />`}
      `}
      ${o.outside&&o.reason&&s`<p class="quoted">
        ${m("The agent's reason: {reason}",{reason:s`<${w} text=${o.reason} max=${1024} />`})}
      </p>`}
    `}let a=P(e);if(a)return s`<${_} icon="edit" head=${n("Would change")} copied=${u(a,!0)}>
      <${he} all text=${a} />
    <//>`;let i=je(e);if(i)return s`<${j} all text=${u(i,!0)} label=${n("The plan, all of it")} />`;let c=s`<b><${w} text=${e.tool_name} /></b>`;return s`<${_}
    icon="tool"
    head=${e.server?m("Would call {tool} of the server {server}",{tool:c,server:s`<b><${w} text=${e.server} max=${64} /></b>`}):m("Would call {tool}, which is built into yaya",{tool:c})}>
    <${we} of=${e.params} />
  <//>`}function Se(e){let t=G(e);if(t){let a=s`<span lang="en">${u(t.sandbox)}</span>`;if(!Oe(t)){let c=n("Runs a program outside the sandbox, with all rights of your user"),d={icon:"lock",tone:"bad",text:m("Sandbox: {box}",{box:a})};return[{icon:"terminal",tone:"bad",text:c},...t.outside?[]:[d]]}let i=[{icon:"lock",tone:"good",text:m("In the sandbox: {box}",{box:a})}];t.hosts?.length&&i.push({icon:"globe",tone:"warn",text:n("Network: {hosts}",{hosts:U(t.hosts)})}),t.write?.length&&i.push({icon:"folder",tone:"",text:n("Writes in: {folders}",{folders:U(t.write)})});for(let c of(t.weaker??[]).slice(0,Be))i.push({icon:"warning",tone:"warn",weak:!0,text:s`<a href=${R("sandbox")}>
          ${m("Not enforced: {what}",{what:s`<span lang="en">${u(c)}</span>`})}
        </a>`});return i}if(F(e)||b(e))return[];if(P(e))return[{icon:"folder",tone:"",text:n("Files of the folder of the session")}];if(!e.server)return e.tool_name==="agent"?[{icon:"agent",tone:"",text:n("Another agent, which asks about its own calls")}]:[];let r=e.claims,o=[];return r?.read_only&&o.push({icon:"search",tone:"",text:n("Only reads"),claim:!0}),r?.destructive&&!r.read_only&&o.push({icon:"trash",tone:"bad",text:n("May delete or overwrite"),claim:!0}),r?.destructive===!1&&!r.read_only&&o.push({icon:"edit",tone:"",text:n("Only adds, and overwrites nothing"),claim:!0}),r?.open_world&&o.push({icon:"globe",tone:"warn",text:n("Reaches things outside the server"),claim:!0}),r?.open_world===!1&&o.push({icon:"server",tone:"",text:n("Stays within the server"),claim:!0}),o.length||o.push({icon:"warning",tone:"warn",text:n("The server does not say what it touches")}),o}var He=new Map([["good","good"],["warn","busy"],["bad","bad"]]);function Me({a:e,times:t,large:r}){let a=(ie("/api/approvals/answered",["approvals"]).data??[]).filter(l=>l.digest===e.digest),i=a.filter(l=>l.response?.startsWith("approve")).length,c=a.filter(l=>l.response==="reject").length,d=Se(e);if(!r){let l=d.filter(p=>p.weak).length,$=d.some(p=>p.claim);return s`<p class="marks small">
      ${d.filter(p=>!p.weak).map(p=>s`<span class=${"badge "+(He.get(p.tone)??"")}>
              <${h} of=${p.icon} />
              ${p.text}
            </span>`)}
      ${l>0&&s`<a class="badge busy" href=${R("sandbox")}>
        <${h} of="warning" />
        ${O(l,"{n} limit is not enforced","{n} limits are not enforced")}
      </a>`}
      ${$&&s`<span class="faint">${n("as the server says")}</span>`}
      ${t>1&&s`<span class="badge">
        ${n("Asked {n} times: one answer counts for all",{n:t})}
      </span>`}
      <span class="faint">
        ${e.why?m("Rule: {reason}",{reason:s`<${w} text=${e.why} max=${160} />`}):e.server?m("From the server {server}",{server:s`<${w} text=${e.server} max=${64} />`}):n("Built into yaya")}
      </span>
    </p>`}return s`<div class="cols c11 facts">
    ${d.length>0&&s`<div>
      <h3>${n("What it may reach")}</h3>
      <ul class="mini">
        ${d.map(l=>s`<li>
              <span class=${l.tone||"muted"}><${h} of=${l.icon} /></span>
              <span>${l.text}</span>
            </li>`)}
      </ul>
      ${d.some(l=>l.claim)&&s`<p class="faint small">
        ${n("This is what the server says of itself. Nobody has checked it.")}
      </p>`}
    </div>`}
    <div>
      <h3>${n("Why you are asked")}</h3>
      <ul class="mini">
        <li>
          <span class="muted"><${h} of="pin" /></span>
          <span>
            ${e.why?m("Rule: {reason}",{reason:s`<b><${w} text=${e.why} max=${300} /></b>`}):e.server?n("Tools of servers ask, unless a rule allows them"):e.kind==="write"?n("Changes ask, unless a rule allows them"):e.kind==="exec"?n("Commands ask, unless a rule allows them"):n("It always asks")}
          </span>
        </li>
        <li>
          ${e.server?s`
                <span class="muted"><${h} of="server" /></span>
                <span>
                  ${m("From the server {server}",{server:s`<a href=${R("servers",e.server)}>
                      <${w} text=${e.server} max=${64} />
                    </a>`})}
                </span>
              `:s`
                <span class="good"><${h} of="check" /></span>
                <span>${n("Built into yaya, not from a server")}</span>
              `}
        </li>
        ${t>1&&s`<li>
          <span class="muted"><${h} of="queue" /></span>
          <span>${n("Asked {n} times: one answer counts for all",{n:t})}</span>
        </li>`}
        ${(i>0||c>0)&&s`<li>
          <span class="muted"><${h} of="clock" /></span>
          <span>${n("The same call before: approved {yes}, rejected {no}",{yes:i,no:c})}</span>
        </li>`}
      </ul>
    </div>
  </div>`}Y("code");Y("approvals");function We(e,t){let r=Math.max(0,Math.ceil((Date.parse(e)-t)/1e3));return`${Math.floor(r/60)}:${String(r%60).padStart(2,"0")}`}function Ue(){let[e,t]=k(Date.now());return A(()=>{let r=setInterval(()=>document.hidden||t(Date.now()),1e3);return()=>clearInterval(r)},[]),e}var Ye=(e,t)=>Date.parse(e)-t<6e4?"bad":"warn",Wt=e=>e.map(t=>t.id).join(" ");function Nt(e){let t=new Map;for(let r of e){let o=JSON.stringify([r.digest??r.id,r.session_id]);t.set(o,[...t.get(o)??[],r])}return[...t.entries()]}async function Je(e,t,r){let o=await Promise.allSettled(e.map(i=>oe("POST",`/api/approvals/${se(i.id)}`,{response:t,...t==="reject"&&r&&{feedback:r}}))),a=o.filter(i=>i.status==="rejected");if(le(["approvals"]),a.length===o.length)throw a[0].reason}function It({asks:e,where:t,among:r,only:o,large:a,done:i}){let c=e[0],d=H(null),[l,$]=k(""),[p,y]=k(!1),[B,Q]=k(!1),[T,X]=k(""),[W,z]=k(null),N=H(!0),I=Ue(),V=ae("approvals:answer");A(()=>(N.current=!0,()=>{N.current=!1}),[]),A(()=>{Q(!1);let f=setTimeout(()=>Q(!0),fe);return()=>clearTimeout(f)},[r]);let C=async f=>{if(!(!B||T)){X(f),z(null);try{await Je(e,f,l),N.current&&i?.()}catch(g){if(!N.current)return;X(""),z(g)}}},L=Date.parse(c.deadline)<=I,Z=()=>{B&&!T&&y(!0)};re(()=>{p&&d.current?.querySelector("input")?.focus()},[p]),A(()=>{let f=g=>{if(!J.value||!V||L||p||g.ctrlKey||g.metaKey||g.altKey||g.defaultPrevented||g.repeat)return;let v=g.target;if(v instanceof HTMLElement&&["INPUT","TEXTAREA","SELECT"].includes(v.tagName)||document.querySelector("dialog[open]")||!o&&!(v instanceof Node&&d.current?.contains(v)))return;let x={y:()=>C("approve"),s:()=>C("approve_for_session"),n:Z}[g.key];x&&(g.preventDefault(),x())};return addEventListener("keydown",f),()=>removeEventListener("keydown",f)});let{head:ee,once:Ne,always:Ie,no:Ce}=Ae(c),te=!B||!!T||L,K=(f,g,v,x)=>s`<button
      type="button"
      class=${f}
      disabled=${te}
      aria-keyshortcuts=${v}
      onClick=${x?()=>{C(x)}:Z}>
      ${x==="approve"&&s`<${h} of="check" />`}
      ${T&&T===x?n("Sending …"):g} ${J.value&&s`<kbd aria-hidden="true">${v}</kbd>`}
    </button>`;return s`<section
    class=${a?"ask large":"ask"}
    ref=${d}
    aria-label=${n("yaya asks: {question}",{question:ee})}>
    <header>
      <span class="seal"><${h} of="shield" />${n("yaya asks")}</span>
      <h2 tabindex="-1">${ee}</h2>
      <span class=${"flex end left "+Ye(c.deadline,I)}>
        <${h} of="clock" />
        <span>
          ${L?n("Refused: nobody answered in time"):a?m("Refused in {time} if nobody answers",{time:s`<b>${We(c.deadline,I)}</b>`}):n("Refused in {time}",{time:We(c.deadline,I)})}
        </span>
      </span>
    </header>
    <div class="body">
      ${t&&s`<p class="chain">${t}</p>`}
      <${Re} a=${c} />
      <${Me} a=${c} times=${e.length} large=${a} />
      <${be} of=${c.params} />
    </div>
    <footer>
      ${W instanceof ne&&W.status===409?s`<p class="notice" role="alert">${ce(W)}</p>`:s`<${me} error=${W} />`}
      ${V?p?s`<form
              class="flex why"
              onKeyDown=${f=>{f.key==="Escape"&&(f.stopPropagation(),y(!1),d.current?.querySelector("h2")?.focus())}}
              onSubmit=${f=>{f.preventDefault(),C("reject")}}>
              <${ge} label=${n("Reason")} hint=${n("The model sees it. It may stay empty.")}>
                ${f=>s`<input id=${f} value=${l} maxlength="16384" onInput=${$e($)} />`}
              <//>
              <button type="button" onClick=${()=>y(!1)}>${n("Cancel")}</button>
              <button type="submit" class="danger" disabled=${te}>
                ${T?n("Sending …"):n("Reject")}
              </button>
            </form>`:s`
              ${K("primary",Ne,"y","approve")}
              ${K("",Ie,"s","approve_for_session")}
              ${K("danger",Ce,"n","")}
            `:s`<p class="muted">
            ${n("This device can watch but not answer. To change that, use Rights under Devices on the machine that yaya runs on.")}
          </p>`}
    </footer>
  </section>`}export{S as a,we as b,Ee as c,Te as d,Le as e,ft as f,We as g,Ue as h,Ye as i,Wt as j,Nt as k,It as l};
