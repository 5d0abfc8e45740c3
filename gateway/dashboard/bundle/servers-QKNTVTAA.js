import{a as he}from"./chunk-MH3DB3A2.js";import{a as ie,d as U,e as ce}from"./chunk-RANZYYRH.js";import{a as $e,b as de}from"./chunk-LO7QWP3A.js";import{a as ue}from"./chunk-JPTKFGYI.js";import{b as me}from"./chunk-PKCEGCSK.js";import{a as V}from"./chunk-FZ3W4JQA.js";import{a as ee}from"./chunk-43UXHYUF.js";import{$ as W,A as ne,B as j,E as le,F as J,G as M,I as a,J as x,N as pe,T as g,U as I,V as fe,W as z,X as ge,Y as P,Z as T,ba as S,c as w,ca as k,d as b,da as B,h,j as X,l as q,m as ae,p as O,q as f,r as se,s as R,u,v as Z,w as re,x as oe,z as A}from"./chunk-URONGCFE.js";import{h as t,i as L,j as D}from"./chunk-GC4OZNPV.js";var be=2e3,De=500,We=200,qe=[t("All"),t("Warnings"),t("Errors")];function ve(e){let s=e.level||(/\b(error|fatal|panic)\b/i.exec(e.text)?"error":"");return["error","critical","alert","emergency"].includes(s)?2:s==="warning"||s==="warn"||/\bwarn(ing)?\b/i.test(e.text)?1:0}var Be=e=>{let s=new Date(e.time);return`${s.toLocaleTimeString("en-GB")}.${String(s.getMilliseconds()).padStart(3,"0")}`};function ye({name:e}){let[s,o]=h([]),[r,n]=h(0),[d,l]=h(!1),[i,$]=h(null),m=q(null),c=q(!0);X(()=>{if(d)return;let p=s,y,_=ie(()=>`/api/mcp/servers/${b(e)}/logs/events?after=${p.at(-1)?.id??0}&limit=${be}`,N=>{let E=N.data;N.name!=="line"||E.id<=(p.at(-1)?.id??0)||(p=[...p.slice(1-be),E],y??=setTimeout(()=>{y=void 0,o(p)},We))},$);return()=>{clearTimeout(y),_()}},[e,d]),X(()=>{let p=m.current;p&&c.current&&(p.scrollTop=p.scrollHeight)});let v=s.filter(p=>ve(p)>=r).slice(-De);return a`<section class="box" aria-label=${t("Logs")}>
    <header>
      <h2>${t("Logs")}</h2>
      <span class="state faint">
        <span class=${d?"dot off":"dot good"}></span>
        ${d?t("paused"):t("following")}
      </span>
      <span class="flex end">
        <span class="seg" role="group" aria-label=${t("Show")}>
          ${qe.map((p,y)=>a`<button type="button" aria-pressed=${y===r} onClick=${()=>n(y)}>
                ${p}
              </button>`)}
        </span>
        <button type="button" class="small" onClick=${()=>l(!d)}>
          ${d?t("Follow"):t("Pause")}
        </button>
        <${$e} text=${v.map(p=>`${p.time} ${p.stream} ${p.level??""} ${u(p.text)}`).join(`
`)} />
      </span>
    </header>
    <${ge} error=${i} />
    ${v.length?a`<div
          class="logs"
          role="log"
          aria-label=${t("Output of the server")}
          tabindex="0"
          ref=${m}
          onScroll=${p=>{let y=p.currentTarget;c.current=y.scrollHeight-y.clientHeight-y.scrollTop<40}}>
          ${v.map(p=>a`<div key=${p.id} class=${["","w","e"][ve(p)]}>
                <span class="faint">${Be(p)}</span>
                <span class="faint">${u(p.level||p.stream)}</span>
                <span>${u(p.text)}</span>
              </div>`)}
        </div>`:a`<${T} icon="logs">
          ${s.length?t("No lines of that level."):t("The server has not said anything yet.")}
        <//>`}
  </section>`}var we=e=>typeof e=="object"&&e!==null&&!Array.isArray(e)&&Object.values(e).every(s=>typeof s=="string");function ke(e){if(typeof e!="object"||e===null||Array.isArray(e))return null;let s=e,{command:o="",args:r=[],env:n={},cwd:d="",url:l="",headers:i={}}=s;return typeof o!="string"||typeof d!="string"||typeof l!="string"||!Array.isArray(r)||!r.every($=>typeof $=="string")||!we(n)||!we(i)?null:{remote:!!l||!o&&["http","sse"].includes(String(s.type)),command:o,args:[...r],env:Object.entries(n),cwd:d,url:l,headers:Object.entries(i)}}function Te(e,s){let{command:o,args:r,env:n,cwd:d,url:l,headers:i,type:$,...m}=e,c=p=>{let y={};for(let[_,N]of p)_.trim()&&Object.defineProperty(y,_.trim(),{value:N,enumerable:!0,configurable:!0,writable:!0});return y},v=p=>Object.keys(p).length>0;return s.remote?{type:l&&$?$:"http",url:s.url.trim(),...v(c(s.headers))&&{headers:c(s.headers)},...m}:{...o&&$?{type:$}:{},command:s.command.trim(),...s.args.length>0&&{args:s.args},...v(c(s.env))&&{env:c(s.env)},...s.cwd.trim()&&{cwd:s.cwd.trim()},...m}}function He({label:e,add:s,all:o,readonly:r,set:n}){return a`<fieldset class="texts">
    <legend>${e}</legend>
    ${o.map((d,l)=>a`<div class="flex" key=${l}>
          <input
            class="code"
            aria-label=${t("Argument {n}",{n:l+1})}
            spellcheck="false"
            value=${d}
            readonly=${r}
            onInput=${k(i=>n(o.with(l,i)))} />
          ${!r&&a`<button
            type="button"
            class="quiet sq"
            aria-label=${t("Remove argument {n}",{n:l+1})}
            onClick=${()=>n(o.filter((i,$)=>$!==l))}>
            <${x} of="close" />
          </button>`}
        </div>`)}
    ${!r&&a`<button type="button" class="quiet small" onClick=${()=>n([...o,""])}>
      <${x} of="plus" />
      ${s}
    </button>`}
  </fieldset>`}function xe({label:e,add:s,kind:o,all:r,readonly:n,set:d}){let l=i=>o==="header"?t("header {n}",{n:i}):t("variable {n}",{n:i});return a`<fieldset class="texts">
    <legend>${e}</legend>
    ${r.map(([i,$],m)=>a`<div class="flex" key=${m}>
          <input
            class="code"
            aria-label=${t("Name of {what}",{what:l(m+1)})}
            placeholder=${t("NAME")}
            spellcheck="false"
            value=${i}
            readonly=${n}
            onInput=${k(c=>d(r.with(m,[c,$])))} />
          <input
            class="code"
            aria-label=${t("Value of {what}",{what:i||l(m+1)})}
            placeholder=${t("value")}
            spellcheck="false"
            value=${$}
            readonly=${n}
            onInput=${k(c=>d(r.with(m,[i,c])))} />
          ${!n&&a`<button
            type="button"
            class="quiet sq"
            aria-label=${t("Remove {what}",{what:i||l(m+1)})}
            onClick=${()=>d(r.filter((c,v)=>v!==m))}>
            <${x} of="close" />
          </button>`}
        </div>`)}
    ${!n&&a`<button type="button" class="quiet small" onClick=${()=>d([...r,["",""]])}>
      <${x} of="plus" />
      ${s}
    </button>`}
  </fieldset>`}function Se({f:e,readonly:s,set:o}){let r=(n,d,l)=>a`<${B} label=${d} hint=${l}>
      ${i=>a`<input
          id=${i}
          class="code"
          spellcheck="false"
          value=${e[n]}
          readonly=${s}
          onInput=${k($=>o({...e,[n]:$}))} />`}
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
  `}var je={command:""};function K({s:e,readonly:s=!1}){let o=ae(()=>JSON.stringify(e?.config??je,null,2),[e?.revision]),[r,n]=h(o),[d,l]=h(null),i=C=>{l(null),n(C)},[$,m]=h({was:o,revision:e?.revision}),[c,v]=h(!1),[p,y]=h(""),[_,N]=h(null);$.was!==o&&r===$.was&&(m({was:o,revision:e?.revision}),i(o));let E=null,Y="";try{E=JSON.parse(r)}catch(C){Y=j(C)}let F=d??ke(E),H=F&&!c,Q=r!==$.was,Pe=async()=>{if(Y)throw new Error(t("This is not JSON: {error}",{error:Y}));N(e?await w("PUT",`/api/mcp/servers/${b(e.name)}`,{config:E,...$.revision&&{revision:$.revision}}):await w("POST","/api/mcp/servers",{name:p.trim(),config:E}))},Fe=()=>{if(N(null),!e){se("servers",p.trim());return}l(null),m({was:r,revision:void 0}),pe(t("The change is in force."))};return a`<section class="box form" aria-label=${t("Configuration")}>
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
            value=${p}
            spellcheck="false"
            maxlength="128"
            onInput=${k(y)} />`}
      <//>`}
      ${H?a`<${Se}
            f=${F}
            readonly=${s}
            set=${C=>{n(JSON.stringify(Te(E,C),null,2)),l(C)}} />`:a`<${B}
            label="JSON"
            hint=${t("As in the mcpServers of clients: command, args, env; or type, url, headers.")}>
            ${C=>a`<textarea
                id=${C}
                rows="16"
                class="code"
                spellcheck="false"
                readonly=${s}
                value=${r}
                onInput=${k(i)}></textarea>`}
          <//>`}
      ${!s&&a`<div class="buttons">
        <${S}
          kind="primary"
          disabled=${e?!Q:!p.trim()||H&&!F.command&&!F.url}
          run=${Pe}>
          ${e?t("Review change"):t("Review")}
        <//>
        ${e&&Q&&a`<button type="button" onClick=${()=>i($.was)}>${t("Discard")}</button>`}
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
    ${d=>{let l=d.filter(c=>c.provider===e.name),i=l.length>0||["ready","degraded"].includes(e.state);i&&(n.current=l);let $=[...n.current.filter(c=>!e.withheld?.includes(c.tool)).map(c=>({name:c.tool,tool:c,pattern:!1})),...(e.withheld??[]).map(c=>({name:c,pattern:/[*?]/.test(c)}))].sort((c,v)=>c.name<v.name?-1:1),m=$.filter(c=>`${c.name} ${c.tool?.description??""}`.toLowerCase().includes(o.toLowerCase()));return $.length?a`<section class="box" aria-label=${t("Tools")}>
        <header>
          <h2>${t("Tools")}</h2>
          <span class="faint" role="status">
            ${D($.filter(c=>c.tool).length,"{n} tool is offered","{n} tools are offered")}
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
          ${m.slice(0,500).map(c=>a`<${Je} key=${c.name} r=${c} s=${e} there=${i} />`)}
        </ul>
        ${m.length===0&&a`<${T}>${t("No tools match.")}<//>`}
      </section>`:a`<${T} icon="tool">
          ${e.state==="ready"?t("This server offers no tools."):t("The tools of a server are known while it runs.")}
        <//>`}}
  <//>`}function Je({r:e,s,there:o}){let[r,n]=h(!1),[d,l]=h(""),i=e.tool,$=i?.annotations,m=async()=>{n(!0),l("");try{await w("PATCH",`/api/mcp/servers/${b(s.name)}/tools/${b(e.name)}`,{enabled:!i})}catch(c){l(j(c))}n(!1)};return a`<li>
    <input
      type="checkbox"
      role="switch"
      class="switch"
      aria-label=${t("Offer {tool}",{tool:u(e.name)})}
      title=${s.editable?"":t("The file of this server is not yaya’s to change")}
      checked=${!!i}
      disabled=${r||!o||e.pattern||!s.editable||!O("config:write")}
      onChange=${c=>{c.target.checked=!!i,m()}} />
    <span class="two">
      ${i?a`<a class="mono" href=${f("tools",i.name)}>
            <${g} text=${e.name} max=${80} />
          </a>`:a`<code><${g} text=${e.name} max=${80} /></code>`}
      <small class="cut">
        ${i?a`<${g} text=${re(i.title||i.description)} max=${160} />`:e.pattern?t("A pattern in the configuration: these are not offered"):t("Not offered")}
      </small>
      ${d&&a`<small class="bad" role="alert">${d}</small>`}
    </span>
    ${$?.destructiveHint===!0&&$.readOnlyHint!==!0&&a`<span class="badge bad" title=${t("By the server’s own account")}>
      ${t("destructive")}
    </span>`}
    ${i&&a`<span class="badge" title=${t("The kind that rules see")}>
      <bdi>${u(i.kind)}</bdi>
    </span>`}
    ${i?.requires_approval&&a`<span class="badge busy">${t("asks first")}</span>`}
  </li>`}var te=864e5,Ne={disabled:0,stopped:0,declared:0,ready:1,draining:2,starting:2,installing:2,degraded:3,waiting:3,failed:4,invalid:4},Le=Ne.failed,Me=[{tone:"soff",y:8,h:3},{tone:"sok",y:3,h:12},{tone:"swarn",y:6,h:9},{tone:"swarn",y:6,h:9},{tone:"se",y:0,h:18}];function Ue(e,s,o){let r=e.map(n=>({at:Date.parse(n.since),rank:Ne[n.state]??0}));return Array.from({length:s},(n,d)=>{let l=o-te+d*te/s,i=Math.min(o,l+te/s),$=-1,m=0;return r.forEach((c,v)=>{let p=Math.min(r[v+1]?.at??o,i)-Math.max(c.at,l);p<0||$===Le||(c.rank===Le||p>=m)&&($=c.rank,m=p)}),$})}function G({s:e,n:s=40}){let o=e.history??[],r=Ue(o,s,Date.now()),n=o.filter(l=>l.state==="failed").length,d=o.length?t("{state} now, failed {n} times in the last 24 hours, as far as yaya has run",{state:le(e.state),n}):t("no states known");return a`<svg
    class="ticks"
    viewBox=${`0 0 ${s*5} 18`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${d}>
    ${r.map((l,i)=>{let $=Me[l]??{tone:"sgap",y:8.5,h:1};return a`<rect
        class=${"f "+$.tone}
        x=${i*5+.6}
        y=${$.y}
        width="3.6"
        height=${$.h} />`})}
  </svg>`}function Ee({s:e,waiting:s}){let o=e.config;return a`
    <p class="lead">
      ${o?.trust==="always"?t("This server may change its tools without your approval: its configuration says so."):t("yaya pins tools and instructions when it first sees them. Tools that appear later, or whose parameters or results change, are not offered until you approve them.")}
    </p>
    <${W} of=${{data:s,error:null,reload:()=>{}}}>
      ${r=>r.length?r.map(n=>a`<${Ve} key=${n.digest} w=${n} />`):a`<${T} icon="shield">${t("No changes wait for approval.")}<//>`}
    <//>
  `}function Ve({w:e}){let[s,o]=h(new Set),r=l=>()=>w("POST",`/api/mcp/quarantine/${b(e.server)}/approve`,{digest:e.digest,...l.length&&{tools:l}}),n=l=>{let i=new Set(s);i.delete(l)||i.add(l),o(i)},d=e.tools.length+(e.instructions?1:0);return a`<section
    class="box trust"
    aria-label=${t("Waiting: {server}",{server:u(e.server)})}>
    <header>
      <h2>${e.runs?t("Waits to start"):t("Waits for approval")}</h2>
      ${d>0&&a`<span class="faint">${D(d,"{n} change","{n} changes")}</span>`}
      ${O("config:write")&&a`<span class="flex end">
        ${s.size>0&&s.size<d&&a`<${S} arm kind="small" run=${r([...s])}>
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
      ${e.tools.map(l=>a`<article key=${l.name}>
          <h3 class="flex">
            <label>
              <input
                type="checkbox"
                checked=${s.has(l.name)}
                onChange=${()=>n(l.name)} /> <code><${g} text=${l.name} /></code>
            </label>
            <span class=${l.wording&&!e.reason?"badge":"badge busy"}>
              ${l.new?t("new"):l.wording?t("description"):t("changed")}
            </span>
          </h3>
          ${l.wording&&!e.reason&&a`<p class="faint">${t("Clients get the approved description.")}</p>`}
          ${l.diff?a`<${I}
                all
                diff
                text=${Z(l.diff)}
                label=${t("What has changed in {tool}",{tool:u(l.name)})} />`:a`<p class="faint">${t("Its definition is too large to show.")}</p>`}
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
  </section>`}function Re({s:e,part:s}){let o=O("config:write"),r=R("/api/mcp/quarantine",["quarantine","servers"]).data?.filter(i=>i.server===e.name),n=(r??[]).reduce((i,$)=>i+M($),0),d=e.state==="disabled",l=[["",t("Overview"),null],["tools",t("Tools"),e.tools||null],["logs",t("Logs"),null],["config",t("Configuration"),null],["trust",t("Trust"),n||null]];return a`<${P}
    title=${e.name}
    crumb=${a`<a href=${f("servers")}>${t("Servers")}</a>`}
    actions=${o&&a`
      ${e.editable&&e.state!=="waiting"&&a`<${S} run=${()=>w("PATCH",`/api/mcp/servers/${b(e.name)}`,{enabled:d})}>
        ${d?t("Turn on"):t("Turn off")}
      <//>`}
      ${!["disabled","waiting"].includes(e.state)&&a`<${S} run=${()=>w("POST",`/api/mcp/servers/${b(e.name)}/restart`)}>
        <${x} of="restart" />
        ${t("Restart")}
      <//>`}
    `}
    subs=${a`<nav class="subs" aria-label=${t("Parts of the server")}>
      ${l.map(([i,$,m])=>a`<a
            key=${i}
            href=${i?f("servers",e.name,i):f("servers",e.name)}
            aria-current=${i===s?"page":void 0}>
            ${$}
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
  `}function Ke({name:e}){let s=R(`/api/traffic/series?server=${encodeURIComponent(e)}`,["servers"]).data;if(!s)return null;let o=s.slices.map(m=>Date.parse(m.ts)),r=m=>s.slices.map(c=>c.calls?c[m]:null),n={name:"p50",tone:"s1",values:r("p50_ms")},d={name:"p95",tone:"s3",values:r("p95_ms")},l={name:t("a minute"),tone:"s2",values:s.slices.map(m=>m.calls)},i={name:t("a minute"),tone:"se",values:s.slices.map(m=>m.errors)},$=m=>String(m);return a`<div class="cols c111">
    <section class="box" aria-label=${t("Latency")}>
      <header>
        <h2>${t("Latency")}</h2>
        <${ce} lines=${[[n,s.total.calls?A(s.total.p50_ms):"–"],[d,s.total.calls?A(s.total.p95_ms):"–"]]} />
      </header>
      <div class="body low">
        <${U}
          label=${t("Latency in the last hour")}
          times=${o}
          lines=${[n,d]}
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
          lines=${[l]}
          show=${$} />
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
          lines=${[i]}
          show=${$} />
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
        run=${async()=>{await w("DELETE",`/api/mcp/servers/${b(e.name)}`),location.hash=f("servers")}}>
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
    <//>`:r?a`<${Re} key=${e} s=${r} part=${s??""} />`:a`<${Qe} of=${o} />`}function Qe({of:e}){let[s,o]=h(""),[r,n]=h(Ie[0]),d=O("config:write"),l=R("/api/mcp/quarantine",["quarantine","servers"]).data??[],i=s.toLowerCase().split(/\s+/).filter(Boolean),$=(e.data??[]).filter(r.has).filter(m=>i.every(c=>`${m.name} ${m.endpoint}`.toLowerCase().includes(c))).sort((m,c)=>_e(m)-_e(c));return a`<${P}
    title=${t("Servers")}
    actions=${d&&a`
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
                  ${Ie.map(c=>a`<button
                        type="button"
                        aria-pressed=${c===r}
                        onClick=${()=>n(c)}>
                        ${t("{part} {n}",{part:c.word,n:m.filter(c.has).length})}
                      </button>`)}
                </div>
              </div>
              ${$.length?a`<${Xe} rows=${$} write=${d} waiting=${l} />`:a`<${T}>${t("No servers match.")}<//>`}
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
  </div>`;function Ze({s:e,write:s,waits:o}){let r=e.state==="disabled",n=e.calls.total?e.calls.errors/e.calls.total*100:0,d=a`<tr role="row" class=${e.reason?"more":""}>
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
          run=${()=>w("POST",`/api/mcp/servers/${b(e.name)}/restart`)}>
          ${t("Restart")}
        <//>`}
        ${s&&r&&e.editable&&a`<${S}
          kind="small"
          label=${t("Turn on {server}",{server:u(e.name)})}
          run=${()=>w("PATCH",`/api/mcp/servers/${b(e.name)}`,{enabled:!0})}>
          ${t("Turn on")}
        <//>`}
      </span>
    </td>
  </tr>`;return e.reason?a`
    ${d}
    <tr role="row" class="why">
      <td role="cell" colspan="9">
        <small class=${J.includes(e.state)?"bad":"faint"}>
          <${g} text=${e.reason} max=${240} />
        </small>
      </td>
    </tr>
  `:d}export{Ye as default};
