import{a as he}from"./chunk-5YHDVP7A.js";import{a as ie,d as U,e as ce}from"./chunk-ORFBRK3V.js";import{a as $e,b as de}from"./chunk-ZAOT4YSA.js";import{a as ue}from"./chunk-O7JAVTGA.js";import{b as me}from"./chunk-IY4UA5QU.js";import{a as V}from"./chunk-QK6JMVOZ.js";import{a as ee}from"./chunk-43UXHYUF.js";import{$ as W,A as ne,B as j,E as le,F as J,G as M,I as a,J as x,N as pe,T as g,U as I,V as fe,W as z,X as ge,Y as P,Z as T,ba as S,c as w,ca as k,d as y,da as B,h,j as X,l as q,m as ae,p as O,q as f,r as se,s as R,u,v as Z,w as re,x as oe,z as A}from"./chunk-DX5UZMM6.js";import{h as t,i as L,j as D}from"./chunk-7KQRHSI2.js";var be=2e3,De=500,We=200,qe=[t("All"),t("Warnings"),t("Errors")];function ve(e){let s=e.level||(/\b(error|fatal|panic)\b/i.exec(e.text)?"error":"");return["error","critical","alert","emergency"].includes(s)?2:s==="warning"||s==="warn"||/\bwarn(ing)?\b/i.test(e.text)?1:0}var Be=e=>{let s=new Date(e.time);return`${s.toLocaleTimeString("en-GB")}.${String(s.getMilliseconds()).padStart(3,"0")}`};function ye({name:e}){let[s,o]=h([]),[r,n]=h(0),[$,i]=h(!1),[c,d]=h(null),m=q(null),p=q(!0);X(()=>{if($)return;let l=s,b,_=ie(()=>`/api/mcp/servers/${y(e)}/logs/events?after=${l.at(-1)?.id??0}&limit=${be}`,N=>{let E=N.data;N.name!=="line"||E.id<=(l.at(-1)?.id??0)||(l=[...l.slice(1-be),E],b??=setTimeout(()=>{b=void 0,o(l)},We))},d);return()=>{clearTimeout(b),_()}},[e,$]),X(()=>{let l=m.current;l&&p.current&&(l.scrollTop=l.scrollHeight)});let v=s.filter(l=>ve(l)>=r).slice(-De);return a`<section class="box" aria-label=${t("Logs")}>
    <header>
      <h2>${t("Logs")}</h2>
      <span class="state faint">
        <span class=${$?"dot off":"dot good"}></span>
        ${$?t("paused"):t("following")}
      </span>
      <span class="flex end">
        <span class="seg" role="group" aria-label=${t("Show")}>
          ${qe.map((l,b)=>a`<button type="button" aria-pressed=${b===r} onClick=${()=>n(b)}>
                ${l}
              </button>`)}
        </span>
        <button type="button" class="small" onClick=${()=>i(!$)}>
          ${$?t("Follow"):t("Pause")}
        </button>
        <${$e} text=${v.map(l=>`${l.time} ${l.stream} ${l.level??""} ${u(l.text)}`).join(`
`)} />
      </span>
    </header>
    <${ge} error=${c} />
    ${v.length?a`<div
          class="logs"
          role="log"
          aria-label=${t("Output of the server")}
          tabindex="0"
          ref=${m}
          onScroll=${l=>{let b=l.currentTarget;p.current=b.scrollHeight-b.clientHeight-b.scrollTop<40}}>
          ${v.map(l=>a`<div key=${l.id} class=${["","w","e"][ve(l)]}>
                <span class="faint">${Be(l)}</span>
                <span class="faint">${u(l.level||l.stream)}</span>
                <span>${u(l.text)}</span>
              </div>`)}
        </div>`:a`<${T} icon="logs">
          ${s.length?t("No lines of that level."):t("The server has not said anything yet.")}
        <//>`}
  </section>`}var we=e=>typeof e=="object"&&e!==null&&!Array.isArray(e)&&Object.values(e).every(s=>typeof s=="string");function ke(e){if(typeof e!="object"||e===null||Array.isArray(e))return null;let s=e,{command:o="",args:r=[],env:n={},cwd:$="",url:i="",headers:c={}}=s;return typeof o!="string"||typeof $!="string"||typeof i!="string"||!Array.isArray(r)||!r.every(d=>typeof d=="string")||!we(n)||!we(c)?null:{remote:!!i||!o&&["http","sse"].includes(String(s.type)),command:o,args:[...r],env:Object.entries(n),cwd:$,url:i,headers:Object.entries(c)}}function Te(e,s){let{command:o,args:r,env:n,cwd:$,url:i,headers:c,type:d,...m}=e,p=l=>{let b={};for(let[_,N]of l)_.trim()&&Object.defineProperty(b,_.trim(),{value:N,enumerable:!0,configurable:!0,writable:!0});return b},v=l=>Object.keys(l).length>0;return s.remote?{type:i&&d?d:"http",url:s.url.trim(),...v(p(s.headers))&&{headers:p(s.headers)},...m}:{...o&&d?{type:d}:{},command:s.command.trim(),...s.args.length>0&&{args:s.args},...v(p(s.env))&&{env:p(s.env)},...s.cwd.trim()&&{cwd:s.cwd.trim()},...m}}function He({label:e,add:s,all:o,readonly:r,set:n}){return a`<fieldset class="texts">
    <legend>${e}</legend>
    ${o.map(($,i)=>a`<div class="flex" key=${i}>
          <input
            class="code"
            aria-label=${t("Argument {n}",{n:i+1})}
            spellcheck="false"
            value=${$}
            readonly=${r}
            onInput=${k(c=>n(o.with(i,c)))} />
          ${!r&&a`<button
            type="button"
            class="quiet sq"
            aria-label=${t("Remove argument {n}",{n:i+1})}
            onClick=${()=>n(o.filter((c,d)=>d!==i))}>
            <${x} of="close" />
          </button>`}
        </div>`)}
    ${!r&&a`<button type="button" class="quiet small" onClick=${()=>n([...o,""])}>
      <${x} of="plus" />
      ${s}
    </button>`}
  </fieldset>`}function xe({label:e,add:s,kind:o,all:r,readonly:n,set:$}){let i=c=>o==="header"?t("header {n}",{n:c}):t("variable {n}",{n:c});return a`<fieldset class="texts">
    <legend>${e}</legend>
    ${r.map(([c,d],m)=>a`<div class="flex" key=${m}>
          <input
            class="code"
            aria-label=${t("Name of {what}",{what:i(m+1)})}
            placeholder=${t("NAME")}
            spellcheck="false"
            value=${c}
            readonly=${n}
            onInput=${k(p=>$(r.with(m,[p,d])))} />
          <input
            class="code"
            aria-label=${t("Value of {what}",{what:c||i(m+1)})}
            placeholder=${t("value")}
            spellcheck="false"
            value=${d}
            readonly=${n}
            onInput=${k(p=>$(r.with(m,[c,p])))} />
          ${!n&&a`<button
            type="button"
            class="quiet sq"
            aria-label=${t("Remove {what}",{what:c||i(m+1)})}
            onClick=${()=>$(r.filter((p,v)=>v!==m))}>
            <${x} of="close" />
          </button>`}
        </div>`)}
    ${!n&&a`<button type="button" class="quiet small" onClick=${()=>$([...r,["",""]])}>
      <${x} of="plus" />
      ${s}
    </button>`}
  </fieldset>`}function Se({f:e,readonly:s,set:o}){let r=(n,$,i)=>a`<${B} label=${$} hint=${i}>
      ${c=>a`<input
          id=${c}
          class="code"
          spellcheck="false"
          value=${e[n]}
          readonly=${s}
          onInput=${k(d=>o({...e,[n]:d}))} />`}
    <//>`;return a`
    <div class="seg" role="group" aria-label=${t("Runs by")}>
      ${[!1,!0].map(n=>a`<button
            type="button"
            aria-pressed=${e.remote===n}
            disabled=${s}
            onClick=${()=>o({...e,remote:n})}>
            ${n?"URL":t("Command")}
          </button>`)}
    </div>
    ${e.remote?a`
          ${r("url","URL","")}
          <${xe}
            label=${t("Headers")}
            add=${t("Add a header")}
            kind="header"
            all=${e.headers}
            readonly=${s}
            set=${n=>o({...e,headers:n})} />
        `:a`
          ${r("command",t("Command"),"")}
          <${He}
            label=${t("Arguments")}
            add=${t("Add an argument")}
            all=${e.args}
            readonly=${s}
            set=${n=>o({...e,args:n})} />
          <${xe}
            label=${t("Environment")}
            add=${t("Add a variable")}
            kind="variable"
            all=${e.env}
            readonly=${s}
            set=${n=>o({...e,env:n})} />
          ${r("cwd",t("Working folder"),t("Empty for the default."))}
        `}
    ${!s&&a`<p class="faint">
      ${t("Secrets shown as **** are kept while the address stays the same, or the command with its arguments and variables. Otherwise enter them again.")}
    </p>`}
  `}var je={command:""};function K({s:e,readonly:s=!1}){let o=ae(()=>JSON.stringify(e?.config??je,null,2),[e?.revision]),[r,n]=h(o),[$,i]=h(null),c=C=>{i(null),n(C)},[d,m]=h({was:o,revision:e?.revision}),[p,v]=h(!1),[l,b]=h(""),[_,N]=h(null);d.was!==o&&r===d.was&&(m({was:o,revision:e?.revision}),c(o));let E=null,Y="";try{E=JSON.parse(r)}catch(C){Y=j(C)}let F=$??ke(E),H=F&&!p,Q=r!==d.was,Pe=async()=>{if(Y)throw new Error(t("This is not JSON: {error}",{error:Y}));N(e?await w("PUT",`/api/mcp/servers/${y(e.name)}`,{config:E,...d.revision&&{revision:d.revision}}):await w("POST","/api/mcp/servers",{name:l.trim(),config:E}))},Fe=()=>{if(N(null),!e){se("servers",l.trim());return}i(null),m({was:r,revision:void 0}),pe(t("The change is in force."))};return a`<section class="box form" aria-label=${t("Configuration")}>
    <header>
      <h2>${t("Configuration")}</h2>
      ${Q&&e&&a`<span class="badge busy">${t("not saved")}</span>`}
      <span class="seg end" role="group" aria-label=${t("Edit as")}>
        <button
          type="button"
          aria-pressed=${!!H}
          disabled=${!F}
          title=${F?"":t("The form cannot show this configuration whole")}
          onClick=${()=>v(!1)}>
          ${t("Form")}
        </button>
        <button type="button" aria-pressed=${!H} onClick=${()=>v(!0)}>JSON</button>
      </span>
    </header>
    <div class="body">
      ${!e&&a`<${B} label=${t("Name")} hint=${t("Its tools are called name__tool.")}>
        ${C=>a`<input
            id=${C}
            value=${l}
            spellcheck="false"
            maxlength="128"
            onInput=${k(b)} />`}
      <//>`}
      ${H?a`<${Se}
            f=${F}
            readonly=${s}
            set=${C=>{n(JSON.stringify(Te(E,C),null,2)),i(C)}} />`:a`<${B}
            label="JSON"
            hint=${t("As in the mcpServers of clients: command, args, env; or type, url, headers.")}>
            ${C=>a`<textarea
                id=${C}
                rows="16"
                class="code"
                spellcheck="false"
                readonly=${s}
                value=${r}
                onInput=${k(c)}></textarea>`}
          <//>`}
      ${!s&&a`<div class="buttons">
        <${S}
          kind="primary"
          disabled=${e?!Q:!l.trim()||H&&!F.command&&!F.url}
          run=${Pe}>
          ${e?t("Review change"):t("Review")}
        <//>
        ${e&&Q&&a`<button type="button" onClick=${()=>c(d.was)}>${t("Discard")}</button>`}
      </div>`}
    </div>
    ${_&&a`<${ue} changes=${[_]} done=${Fe} cancel=${()=>N(null)} />`}
  </section>`}var Ce=()=>a`<${P}
    title=${t("Add a server")}
    crumb=${a`<a href=${f("servers")}>${t("Servers")}</a>`}
    lead=${t("Nothing runs before you have seen exactly what would run, and approved it.")}>
    <${K} />
  <//>`;function Oe({of:e,server:s}){let o=e.profile==="off"||e.backend==="off";return a`<section class="box" aria-label=${t("Sandbox")}>
    <header>
      <h2>${t("Sandbox")}</h2>
      <a class="end" href=${f("sandbox")}>${t("What is enforced here")}</a>
    </header>
    <div class="body">
      ${o&&a`<p class="problem">
        ${e.profile==="off"?a`
              <b>${t("Outside the sandbox.")}</b> ${t("It runs with all rights of your user, and can read and change yaya’s own files.")}
            `:a`
              <b>${t("Nothing is enforced.")}</b> ${t("It runs with all rights of your user, although it should be sandboxed:")}
            `}
      </p>`}
      ${e.profile!=="off"&&a`<p><${g} text=${e.allowed} max=${4096} /></p>`}
      ${!o&&e.backend&&a`<dl>
        <dt>${t("Enforced")}</dt>
        <dd>
          ${t("{parts} ({backend})",{parts:ne((e.enforced??[]).map(r=>he("sandbox",r)))||t("nothing"),backend:u(e.backend)})}
        </dd>
        ${!!e.missing?.length&&a`
          <dt>${t("Not enforced, or only in part")}</dt>
          <dd>
            <ul class="plain">
              ${e.missing.map(r=>a`<li><${g} text=${r} max=${1e3} /></li>`)}
            </ul>
          </dd>
        `}
        ${!!e.breaks?.length&&a`
          <dt>${t("Does not work here")}</dt>
          <dd>
            <ul class="plain">
              ${e.breaks.map(r=>a`<li><${g} text=${r} max=${1e3} /></li>`)}
            </ul>
          </dd>
        `}
      </dl>`}
      ${!!e.denied?.length&&a`
        <h3>${t("What it was kept from")}</h3>
        <ul class="plain changes">
          ${e.denied.map(r=>a`<li key=${r.what}>
                <${g} text=${r.what} max=${1024} />
                ${r.allow&&a`<${de}
                  text=${r.allow}
                  label=${t("The command that allows {server} this",{server:u(s)})} />`}
              </li>`)}
        </ul>
      `}
    </div>
  </section>`}function Ae({s:e}){let s=R("/api/tools",["tools","servers"]),[o,r]=h(""),n=q([]);return a`<${W} of=${s}>
    ${$=>{let i=$.filter(l=>l.provider===e.name),c=i.length>0||["ready","degraded"].includes(e.state);c&&(n.current=i);let d=e.withheld??[],m=c?i:n.current.filter(l=>!d.includes(l.tool)),p=[...m.map(l=>({name:l.tool,tool:l,pattern:!1})),...d.filter(l=>!m.some(b=>b.tool===l)).map(l=>({name:l,pattern:/[*?]/.test(l)}))].sort((l,b)=>l.name<b.name?-1:1),v=p.filter(l=>`${l.name} ${l.tool?.description??""}`.toLowerCase().includes(o.toLowerCase()));return p.length?a`<section class="box" aria-label=${t("Tools")}>
        <header>
          <h2>${t("Tools")}</h2>
          <span class="faint" role="status">
            ${D(p.filter(l=>l.tool).length,"{n} tool is offered","{n} tools are offered")}
          </span>
          <input
            type="search"
            class="end"
            aria-label=${t("Filter tools")}
            placeholder=${t("Filter")}
            value=${o}
            onInput=${k(r)} />
        </header>
        <ul class="rows">
          ${v.slice(0,500).map(l=>a`<${Je} key=${l.name} r=${l} s=${e} there=${c} />`)}
        </ul>
        ${v.length===0&&a`<${T}>${t("No tools match.")}<//>`}
      </section>`:a`<${T} icon="tool">
          ${e.state==="ready"?t("This server offers no tools."):t("The tools of a server are known while it runs.")}
        <//>`}}
  <//>`}function Je({r:e,s,there:o}){let[r,n]=h(!1),[$,i]=h(""),c=e.tool,d=c?.annotations,m=async()=>{n(!0),i("");try{await w("PATCH",`/api/mcp/servers/${y(s.name)}/tools/${y(e.name)}`,{enabled:!c})}catch(p){i(j(p))}n(!1)};return a`<li>
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label=${t("Offer {tool}",{tool:u(e.name)})}
      title=${s.editable?"":t("The file of this server is not yaya’s to change")}
      checked=${!!c}
      disabled=${r||!o||e.pattern||!s.editable||!O("config:write")}
      onChange=${p=>{p.target.checked=!!c,m()}} />
    <span class="two">
      ${c?a`<a class="mono" href=${f("tools",c.name)}>
            <${g} text=${e.name} max=${80} />
          </a>`:a`<code><${g} text=${e.name} max=${80} /></code>`}
      <small class="cut">
        ${c?a`<${g} text=${re(c.title||c.description)} max=${160} />`:e.pattern?t("A pattern in the configuration: these are not offered"):t("Not offered")}
      </small>
      ${$&&a`<small class="bad" role="alert">${$}</small>`}
    </span>
    ${d?.destructiveHint===!0&&d.readOnlyHint!==!0&&a`<span class="badge bad" title=${t("By the server’s own account")}>
      ${t("destructive")}
    </span>`}
    ${c&&a`<span class="badge" title=${t("The kind that rules see")}>
      <bdi>${u(c.kind)}</bdi>
    </span>`}
    ${c?.requires_approval&&a`<span class="badge busy">${t("asks first")}</span>`}
  </li>`}var te=864e5,Ne={disabled:0,stopped:0,declared:0,ready:1,draining:2,starting:2,installing:2,degraded:3,waiting:3,failed:4,invalid:4},Le=Ne.failed,Me=[{tone:"soff",y:8,h:3},{tone:"sok",y:3,h:12},{tone:"swarn",y:6,h:9},{tone:"swarn",y:6,h:9},{tone:"se",y:0,h:18}];function Ue(e,s,o){let r=e.map(n=>({at:Date.parse(n.since),rank:Ne[n.state]??0}));return Array.from({length:s},(n,$)=>{let i=o-te+$*te/s,c=Math.min(o,i+te/s),d=-1,m=0;return r.forEach((p,v)=>{let l=Math.min(r[v+1]?.at??o,c)-Math.max(p.at,i);l<0||d===Le||(p.rank===Le||l>=m)&&(d=p.rank,m=l)}),d})}function G({s:e,n:s=40}){let o=e.history??[],r=Ue(o,s,Date.now()),n=o.filter(i=>i.state==="failed").length,$=o.length?t("{state} now, failed {n} times in the last 24 hours, as far as yaya has run",{state:le(e.state),n}):t("no states known");return a`<svg
    class="ticks"
    viewBox=${`0 0 ${s*5} 18`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${$}>
    ${r.map((i,c)=>{let d=Me[i]??{tone:"sgap",y:8.5,h:1};return a`<rect
        class=${"f "+d.tone}
        x=${c*5+.6}
        y=${d.y}
        width="3.6"
        height=${d.h} />`})}
  </svg>`}function Ee({s:e,waiting:s}){let o=e.config;return a`
    <p class="lead">
      ${o?.trust==="always"?t("This server may change its tools without your approval: its configuration says so."):t("yaya pins tools and instructions when it first sees them. Tools that appear later, or whose parameters or results change, are not offered until you approve them.")}
    </p>
    <${W} of=${{data:s,error:null,reload:()=>{}}}>
      ${r=>r.length?r.map(n=>a`<${Ve} key=${n.digest} w=${n} />`):a`<${T} icon="shield">${t("No changes wait for approval.")}<//>`}
    <//>
  `}function Ve({w:e}){let[s,o]=h(new Set),r=i=>()=>w("POST",`/api/mcp/quarantine/${y(e.server)}/approve`,{digest:e.digest,...i.length&&{tools:i}}),n=i=>{let c=new Set(s);c.delete(i)||c.add(i),o(c)},$=e.tools.length+(e.instructions?1:0);return a`<section
    class="box trust"
    aria-label=${t("Waiting: {server}",{server:u(e.server)})}>
    <header>
      <h2>${e.runs?t("Waits to start"):t("Waits for approval")}</h2>
      ${$>0&&a`<span class="faint">${D($,"{n} change","{n} changes")}</span>`}
      ${O("config:write")&&a`<span class="flex end">
        ${s.size>0&&s.size<$&&a`<${S} arm kind="small" run=${r([...s])}>
          ${t("Approve {n} selected",{n:s.size})}
        <//>`}
        <${S} arm kind="primary small" run=${r([])}>${t("Approve all")}<//>
      </span>`}
    </header>
    <div class="body">
      ${e.reason&&a`<p class="notice">
        ${L("All tools wait: {reason}",{reason:a`<${g} text=${e.reason} max=${300} />`})}
      </p>`}
      ${e.runs&&a`
        <h3>${t("It would run")}</h3>
        <${I} all text=${e.runs} label=${t("What it would run")} />
        <details>
          <summary>${t("Configuration")}</summary>
          <${I} all text=${oe(e.config)} />
        </details>
      `}
      ${e.tools.map(i=>a`<article key=${i.name}>
          <h3 class="flex">
            <label>
              <input
                type="checkbox"
                checked=${s.has(i.name)}
                onChange=${()=>n(i.name)} /> <code><${g} text=${i.name} /></code>
            </label>
            <span class=${i.wording&&!e.reason?"badge":"badge busy"}>
              ${i.new?t("new"):i.wording?t("description"):t("changed")}
            </span>
          </h3>
          ${i.wording&&!e.reason&&a`<p class="faint">${t("Clients get the approved description.")}</p>`}
          ${i.diff?a`<${I}
                all
                diff
                text=${Z(i.diff)}
                label=${t("What has changed in {tool}",{tool:u(i.name)})} />`:a`<p class="faint">${t("Its definition is too large to show.")}</p>`}
        </article>`)}
      ${e.instructions&&a`<article>
        <h3 class="flex">${t("Instructions")} <span class="badge">${t("changed")}</span></h3>
        <p class="faint">${t("Clients get the approved instructions.")}</p>
        <${I}
          all
          diff
          text=${Z(e.instructions)}
          label=${t("What has changed in the instructions of {server}",{server:u(e.server)})} />
      </article>`}
    </div>
  </section>`}function Re({s:e,part:s}){let o=O("config:write"),r=R("/api/mcp/quarantine",["quarantine","servers"]).data?.filter(c=>c.server===e.name),n=(r??[]).reduce((c,d)=>c+M(d),0),$=e.state==="disabled",i=[["",t("Overview"),null],["tools",t("Tools"),e.tools||null],["logs",t("Logs"),null],["config",t("Configuration"),null],["trust",t("Trust"),n||null]];return a`<${P}
    title=${e.name}
    crumb=${a`<a href=${f("servers")}>${t("Servers")}</a>`}
    actions=${o&&a`
      ${e.editable&&e.state!=="waiting"&&a`<${S} run=${()=>w("PATCH",`/api/mcp/servers/${y(e.name)}`,{enabled:$})}>
        ${$?t("Turn on"):t("Turn off")}
      <//>`}
      ${!["disabled","waiting"].includes(e.state)&&a`<${S} run=${()=>w("POST",`/api/mcp/servers/${y(e.name)}/restart`)}>
        <${x} of="restart" />
        ${t("Restart")}
      <//>`}
    `}
    subs=${a`<nav class="subs" aria-label=${t("Parts of the server")}>
      ${i.map(([c,d,m])=>a`<a
            key=${c}
            href=${c?f("servers",e.name,c):f("servers",e.name)}
            aria-current=${c===s?"page":void 0}>
            ${d}
            ${m!==null&&a` <span class="faint">${m}</span>`}
          </a>`)}
    </nav>`}>
    ${s==="tools"?a`<${Ae} s=${e} />`:s==="logs"?a`<${ye} name=${e.name} />`:s==="config"?a`<${Ge} s=${e} write=${o} />`:s==="trust"?a`<${Ee} s=${e} waiting=${r} />`:a`<${ze} s=${e} />`}
  <//>`}function ze({s:e}){return a`
    <div class="head">
      <${V} name=${e.name} large />
      <div class="two">
        <p>
          <${z} state=${e.state} /> ${e.since&&a`<span class="faint">
            ${L("since {time}",{time:a`<${fe} at=${e.since} />`})}
          </span>`}
          ${e.reason&&a` <${g} text=${e.reason} max=${1e3} />`}
        </p>
        <code><${g} text=${e.endpoint} max=${500} /></code>
      </div>
      <span class="badge">${e.transport==="stdio"?t("This machine"):t("Remote, HTTP")}</span>
    </div>
    ${e.state==="waiting"&&a`<p class="notice">
      ${L("It does not start until you approve it: {trust}.",{trust:a`<a href=${f("servers",e.name,"trust")}>${t("Trust")}</a>`})}
    </p>`}
    ${!!e.history?.length&&a`<section class="box" aria-label=${t("State")}>
      <header><h2>${t("State, last 24 hours")}</h2></header>
      <div class="body">
        <${G} s=${e} n=${96} />
        <p class="flex faint">
          <small>${t("24 hours ago")}</small>
          <small class="end">${t("Now")}</small>
        </p>
      </div>
    </section>`}
    ${O("audit:read")&&a`<${Ke} name=${e.name} />`}
    <div class=${e.sandbox?"cols c11":"cols"}>
      <section class="box" aria-label=${t("Facts")}>
        <header><h2>${t("Facts")}</h2></header>
        <div class="body">
          <dl>
            <dt>${t("Configured in")}</dt>
            <dd><code>${u(e.file)}</code></dd>
            <dt>${t("Tools")}</dt>
            <dd><a href=${f("servers",e.name,"tools")}>${e.tools}</a></dd>
            <dt>${t("Started in")}</dt>
            <dd>${e.start_ms?A(e.start_ms):"–"}</dd>
            <dt>${t("Restarts")}</dt>
            <dd>${e.restarts}</dd>
            <dt>${t("Calls")}</dt>
            <dd>
              ${e.calls.total?t("{n} since yaya runs, {bad} failed or refused; p50 {p50}, p95 {p95}",{n:e.calls.total,bad:e.calls.errors,p50:A(e.calls.p50_ms),p95:A(e.calls.p95_ms)}):t("none since yaya runs")}
            </dd>
            ${e.last_error&&!["ready","installing"].includes(e.state)&&e.last_error!==e.reason&&a`<dt>${t("Last error")}</dt><dd><${g} text=${e.last_error} max=${1e3} /></dd>`}
          </dl>
        </div>
      </section>
      ${e.sandbox&&a`<${Oe} of=${e.sandbox} server=${e.name} />`}
    </div>
    ${!!e.diagnostics?.length&&a`
      <h2>${t("Last messages")}</h2>
      <${I}
        text=${e.diagnostics.map(s=>u(s)).join(`
`)}
        label=${t("Diagnostics")} />
    `}
    ${e.stderr&&a`
      <h2>${t("Standard error")}</h2>
      <${I} text=${u(e.stderr,!0)} label=${t("The last lines of its standard error")} />
    `}
  `}function Ke({name:e}){let s=R(`/api/traffic/series?server=${encodeURIComponent(e)}`,["servers"]).data;if(!s)return null;let o=s.slices.map(m=>Date.parse(m.ts)),r=m=>s.slices.map(p=>p.calls?p[m]:null),n={name:"p50",tone:"s1",values:r("p50_ms")},$={name:"p95",tone:"s3",values:r("p95_ms")},i={name:t("a minute"),tone:"s2",values:s.slices.map(m=>m.calls)},c={name:t("a minute"),tone:"se",values:s.slices.map(m=>m.errors)},d=m=>String(m);return a`<div class="cols c111">
    <section class="box" aria-label=${t("Latency")}>
      <header>
        <h2>${t("Latency")}</h2>
        <${ce} lines=${[[n,s.total.calls?A(s.total.p50_ms):"–"],[$,s.total.calls?A(s.total.p95_ms):"–"]]} />
      </header>
      <div class="body low">
        <${U}
          label=${t("Latency in the last hour")}
          times=${o}
          lines=${[n,$]}
          show=${A} />
      </div>
    </section>
    <section class="box" aria-label=${t("Calls")}>
      <header>
        <h2>${t("Calls")}</h2>
        <span class="faint">${t("last hour")}</span>
        <b class="end">${s.total.calls}</b>
      </header>
      <div class="body low">
        <${U}
          stacked
          label=${t("Calls by minute in the last hour")}
          times=${o}
          lines=${[i]}
          show=${d} />
      </div>
    </section>
    <section class="box" aria-label=${t("Errors")}>
      <header>
        <h2>${t("Errors")}</h2>
        <span class="faint">${t("last hour")}</span>
        <b class="end">${s.total.errors}</b>
      </header>
      <div class="body low">
        <${U}
          stacked
          label=${t("Failed calls by minute in the last hour")}
          times=${o}
          lines=${[c]}
          show=${d} />
      </div>
    </section>
  </div>`}function Ge({s:e,write:s}){return e.editable?a`
    <${K} s=${e} readonly=${!s} />
    ${s&&a`<div class="buttons">
      <${me}
        kind="danger"
        yes=${t("Remove server")}
        ask=${a`
          ${L("{server} is stopped and taken out of the configuration.",{server:a`<b><${g} text=${e.name} /></b>`})}
        `}
        run=${async()=>{await w("DELETE",`/api/mcp/servers/${y(e.name)}`),location.hash=f("servers")}}>
        <${x} of="trash" />
        ${t("Remove server")}
      <//>
    </div>`}
  `:a`
      <p class="notice">
        ${L("This server is configured in {file}, which yaya does not change: edit it there.",{file:a`<code>${u(e.file)}</code>`})}
      </p>
      <${K} s=${e} readonly />
    `}ee("plot");ee("servers");var Ie=[{word:t("All"),has:()=>!0},{word:t("Ready"),has:e=>e.state==="ready"},{word:t("Trouble"),has:e=>J.includes(e.state)||e.state==="waiting"},{word:t("Off"),has:e=>e.state==="disabled"||e.state==="stopped"}],_e=e=>["failed","invalid","degraded","waiting","starting","installing","ready"].indexOf(e.state)+1||9;function Ye({rest:[e,s]}){let o=R("/api/mcp/servers",["servers"]);if(!e&&s==="new"&&O("config:write"))return a`<${Ce} />`;let r=e?o.data?.find(n=>n.name===e):null;return e&&o.data&&!r?a`<${P} title=${e}>
      <${T} icon="server">
        ${t("Server not found.")} <a href=${f("servers")}>${t("All servers")}</a>
      <//>
    <//>`:r?a`<${Re} key=${e} s=${r} part=${s??""} />`:a`<${Qe} of=${o} />`}function Qe({of:e}){let[s,o]=h(""),[r,n]=h(Ie[0]),$=O("config:write"),i=R("/api/mcp/quarantine",["quarantine","servers"]).data??[],c=s.toLowerCase().split(/\s+/).filter(Boolean),d=(e.data??[]).filter(r.has).filter(m=>c.every(p=>`${m.name} ${m.endpoint}`.toLowerCase().includes(p))).sort((m,p)=>_e(m)-_e(p));return a`<${P}
    title=${t("Servers")}
    actions=${$&&a`
      <a class="button" href=${f("start")}><${x} of="download" />${t("Import")}</a>
      <a class="button nophone" href=${f("catalogue")}>
        <${x} of="catalogue" />
        ${t("Catalogue")}
      </a>
      <a class="button primary" href=${f("servers","","new")}>
        <${x} of="plus" />
        ${t("Add a server")}
      </a>
    `}>
    <${W} of=${e}>
      ${m=>m.length===0?a`<${T} icon="server">
              ${L("No servers are configured. {bring}, or add one.",{bring:a`<a href=${f("start")}>
                  ${t("Import those of your other clients")}
                </a>`})}
            <//>`:a`
              <div class="filters">
                <input
                  type="search"
                  class="narrow"
                  aria-label=${t("Filter servers")}
                  placeholder=${t("Filter servers")}
                  value=${s}
                  onInput=${k(o)} />
                <div class="seg" role="group" aria-label=${t("Show")}>
                  ${Ie.map(p=>a`<button
                        type="button"
                        aria-pressed=${p===r}
                        onClick=${()=>n(p)}>
                        ${t("{part} {n}",{part:p.word,n:m.filter(p.has).length})}
                      </button>`)}
                </div>
              </div>
              ${d.length?a`<${Xe} rows=${d} write=${$} waiting=${i} />`:a`<${T}>${t("No servers match.")}<//>`}
            `}
    <//>
  <//>`}var Xe=({rows:e,write:s,waiting:o})=>a`<div class="box">
    <table class="list" role="table" aria-label=${t("Servers")}>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader">${t("Server")}</th>
          <th role="columnheader">${t("State")}</th>
          <th role="columnheader" class="wide">${t("Last 24 hours")}</th>
          <th role="columnheader" class="num">${t("Calls")}</th>
          <th role="columnheader" class="num">p50</th>
          <th role="columnheader" class="num">p95</th>
          <th role="columnheader" class="num">${t("Errors")}</th>
          <th role="columnheader" class="num">${t("Tools")}</th>
          <th role="columnheader"><span class="sr">${t("Actions")}</span></th>
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${e.map(r=>a`<${Ze}
            key=${r.name}
            s=${r}
            write=${s}
            waits=${o.find(n=>n.server===r.name)} />`)}
      </tbody>
    </table>
  </div>`;function Ze({s:e,write:s,waits:o}){let r=e.state==="disabled",n=e.calls.total?e.calls.errors/e.calls.total*100:0,$=a`<tr role="row" class=${e.reason?"more":""}>
    <td role="cell" class="p1">
      <span class="flex">
        <${V} name=${e.name} />
        <span class="two">
          <a class="strong" href=${f("servers",e.name)}><${g} text=${e.name} max=${64} /></a>
          <small class="cut run"><code><${g} text=${e.endpoint} max=${120} /></code></small>
        </span>
      </span>
    </td>
    <td role="cell" class="p2"><${z} state=${e.state} /></td>
    <td role="cell" class="wide"><${G} s=${e} /></td>
    <td role="cell" class="num">${e.calls.total}</td>
    <td role="cell" class="num">${e.calls.total?A(e.calls.p50_ms):"–"}</td>
    <td role="cell" class="num">${e.calls.total?A(e.calls.p95_ms):"–"}</td>
    <td role="cell" class=${n?"num bad":"num"}>
      ${e.calls.total?`${n.toFixed(n&&n<10?1:0)} %`:"–"}
    </td>
    <td role="cell" class="num">${e.tools}</td>
    <td role="cell" class="p3">
      <span class="flex">
        ${o&&a`<a class="button small" href=${f("servers",e.name,"trust")}>
          ${D(M(o),"Compare {n} change","Compare {n} changes")}
        </a>`}
        ${s&&J.includes(e.state)&&a`<${S}
          kind="small"
          label=${t("Restart {server}",{server:u(e.name)})}
          run=${()=>w("POST",`/api/mcp/servers/${y(e.name)}/restart`)}>
          ${t("Restart")}
        <//>`}
        ${s&&r&&e.editable&&a`<${S}
          kind="small"
          label=${t("Turn on {server}",{server:u(e.name)})}
          run=${()=>w("PATCH",`/api/mcp/servers/${y(e.name)}`,{enabled:!0})}>
          ${t("Turn on")}
        <//>`}
      </span>
    </td>
  </tr>`;return e.reason?a`
    ${$}
    <tr role="row" class="why">
      <td role="cell" colspan="9">
        <small class=${J.includes(e.state)?"bad":"faint"}>
          <${g} text=${e.reason} max=${240} />
        </small>
      </td>
    </tr>
  `:$}export{Ye as default};
