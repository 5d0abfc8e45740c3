import{a as U,c as V}from"./chunk-U3QQM2FN.js";import"./chunk-COBE4HLW.js";import{a as I}from"./chunk-QK6JMVOZ.js";import{a as H}from"./chunk-43UXHYUF.js";import{$ as A,I as t,T as p,U as O,W,X as Y,Y as w,Z as k,b as _,ba as C,c as T,ca as y,d as J,da as N,h as f,j as D,m as F,p as q,q as b,r as j,s as P,u as h,w as S,x as E,z as G}from"./chunk-DX5UZMM6.js";import{h as n,i as B,j as M}from"./chunk-7KQRHSI2.js";function z(e){let s=e;if(!s||typeof s!="object"||s.type!=="object")return null;for(let o of["oneOf","anyOf","allOf","$ref","if","patternProperties"])if(Object.hasOwn(s,o))return null;let i=s.properties??{},a=Array.isArray(s.required)?s.required:[];return Object.keys(i).map(o=>{let r=i[o]??{},c="json";return Array.isArray(r.enum)&&r.enum.every(d=>["string","number","boolean"].includes(typeof d))?c="enum":r.type==="string"?c=(r.maxLength??0)>200||/content|text|body|prompt|patch/i.test(o)?"long":"text":(r.type==="number"||r.type==="integer"||r.type==="boolean")&&(c=r.type),{name:o,schema:r,required:a.includes(o),kind:c}})}function R(e,s){let i=[];for(let a of e){let o=s.get(a.name);if(o===void 0||o===""){if(a.required&&a.kind==="boolean")i.push(`${JSON.stringify(a.name)}:false`);else if(a.required&&(a.kind==="text"||a.kind==="long"))i.push(`${JSON.stringify(a.name)}:""`);else if(a.required)throw new Error(n("{name} is needed",{name:a.name}));continue}let r;switch(a.kind){case"boolean":r=String(!!o);break;case"number":case"integer":if(!/^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(String(o).trim()))throw new Error(n("{name} is not a number",{name:a.name}));r=String(o).trim();break;case"enum":r=JSON.stringify(a.schema.enum?.[Number(o)]);break;case"json":try{JSON.parse(String(o))}catch{throw new Error(n("{name} is not JSON",{name:a.name}))}r=String(o);break;default:r=JSON.stringify(String(o))}i.push(`${JSON.stringify(a.name)}:${r}`)}return`{${i.join(",")}}`}function K({field:e,value:s,set:i}){let a=t`
    <${p} text=${e.schema.title||e.name} max=${80} />
    ${e.required?t` <span aria-label=${n("needed")}>*</span>`:""}
  `,o=t`<${p} text=${S(e.schema.description)} max=${300} />`,r=y(i);return t`<${N} label=${a} hint=${e.schema.description&&o}>
    ${c=>{switch(e.kind){case"boolean":return t`<input
            id=${c}
            type="checkbox"
            checked=${!!s}
            onChange=${d=>i(d.target.checked)} />`;case"enum":return t`<select id=${c} value=${s??""} onChange=${r}>
            <option value="">–</option>
            ${e.schema.enum?.map((d,l)=>t`<option value=${String(l)}>${h(d)}</option>`)}
          </select>`;case"long":return t`<textarea id=${c} rows="4" value=${s??""} onInput=${r}></textarea>`;case"json":return t`<textarea
            id=${c}
            class="code"
            rows="3"
            placeholder="JSON"
            spellcheck="false"
            value=${s??""}
            onInput=${r}></textarea>`;default:return t`<input
            id=${c}
            inputmode=${e.kind==="text"?void 0:"decimal"}
            value=${s??""}
            placeholder=${e.schema.default===void 0?"":h(JSON.stringify(e.schema.default))}
            onInput=${r} />`}}}
  <//>`}H("servers");var X=150,Z=[];function ee(e,s){let[i,a]=f([]),[o,r]=f(null),c=s.trim();D(()=>{if(a([]),r(null),!c)return;let $=!1,m=setTimeout(()=>{T("GET",`/api/tools/search?q=${encodeURIComponent(c)}&limit=200`).then(g=>$||a(g),g=>$||r(g))},X);return()=>{$=!0,clearTimeout(m)}},[c,e]);let d=new Map(i.map(($,m)=>[$,m])),l=c.toLowerCase().split(/\s+/).filter(Boolean),x=$=>l.every(m=>`${$.name} ${$.title??""} ${$.description}`.toLowerCase().includes(m));return{list:e.filter($=>d.has($.name)||x($)).sort(($,m)=>(d.get($.name)??i.length)-(d.get(m.name)??i.length)),error:o}}function te({rest:[e,s=""]}){let i=P("/api/tools",["tools"]),a=i.data?.find(o=>o.name===e);return e?i.data&&!a?t`<${w} title=${e} crumb=${t`<a href=${b("tools")}>${n("Tools")}</a>`}>
      <${k} icon="tool">
        ${n("This tool is not offered now.")} <a href=${b("tools")}>${n("All tools")}</a>
      <//>
    <//>`:a?t`<${ae} key=${e} tool=${a} />`:t`<${w} title=${e}><${A} of=${i}>${()=>null}<//><//>`:t`<${ne} of=${i} server=${s} />`}function ne({of:e,server:s}){let[i,a]=f(""),{list:o,error:r}=ee(e.data??Z,i),c=o.filter(l=>!s||l.provider===s),d=[...new Set((e.data??[]).map(l=>l.provider))].filter(Boolean).sort();return t`<${w} title=${s?n("Tools of {server}",{server:s}):n("Tools")}>
    <${A} of=${e}>
      ${()=>t`
        <div class="filters">
          <input
            type="search"
            class="narrow"
            aria-label=${n("Find tools")}
            placeholder=${n("What you want to do")}
            maxlength="200"
            spellcheck="false"
            value=${i}
            onInput=${y(a)} />
          <select
            aria-label=${n("Server")}
            value=${s}
            onChange=${y(l=>l?j("tools","",l):j("tools"))}>
            <option value="">${n("All servers")}</option>
            ${d.map(l=>t`<option value=${l}>${h(l).slice(0,60)}</option>`)}
          </select>
          <span class="faint end" role="status">
            ${M(c.length,"{n} tool","{n} tools")}
          </span>
        </div>
        <${Y} error=${r} />
        ${c.length?t`<section class="box" aria-label=${n("Tools")}>
              <div class="rows">
                ${c.slice(0,500).map(l=>t`<${se} key=${l.name} x=${l} />`)}
              </div>
            </section>`:t`<${k} icon="tool">
              ${e.data?.length?n("No tools match."):t`
                    ${n("No tools are offered.")}
                    ${" "}
                    <a href=${b("servers")}>${n("Servers")}</a>
                  `}
            <//>`}
      `}
    <//>
  <//>`}function Q({x:e}){let s=e.annotations;return t`
    ${s?.destructiveHint===!0&&s.readOnlyHint!==!0&&t`<span class="badge bad" title=${n("By the server’s own account")}>
      ${n("destructive")}
    </span>`}
    <span class="badge" title=${n("The kind that rules see")}><bdi>${h(e.kind)}</bdi></span>
    ${e.requires_approval&&t`<span class="badge busy">${n("asks first")}</span>`}
  `}var se=({x:e})=>t`<a href=${b("tools",e.name)}>
    <${I} name=${e.provider||"yaya"} />
    <span class="two">
      <span class="cut mono"><${p} text=${e.name} max=${128} /></span>
      <small class="cut"><${p} text=${S(e.title||e.description)} max=${200} /></small>
    </span>
    <span class="flex nophone"><${Q} x=${e} /></span>
  </a>`;function ae({tool:e}){let s=F(()=>z(e.input_schema),[e]),[i,a]=f(new Map),[o,r]=f(s===null),[c,d]=f("{}"),[l,x]=f(null),$=(u,v)=>a(new Map(i).set(u,v)),m=()=>{try{d(JSON.stringify(JSON.parse(R(s??[],i)),null,2))}catch{}r(!0)},g=async()=>{x(null);let u=o?c:R(s??[],i);JSON.parse(u);let v=await _("POST",`/api/tools/${J(e.name)}/call`,{text:`{"arguments":${u}}`});x(await v.json())},L=q("tools:call")&&q("approvals:answer")&&!e.for_agents;return t`<${w} title=${e.name} crumb=${t`<a href=${b("tools")}>${n("Tools")}</a>`}>
    <div class="head">
      <${I} name=${e.provider||"yaya"} large />
      <div class="two">
        <p>
          ${e.title&&t`<b><${p} text=${e.title} /></b>${" "}`} <${Q} x=${e} />
        </p>
        <small class="faint">
          ${e.provider?B("Of {server}, where it is called {tool}.",{server:t`<a href=${b("servers",e.provider)}>
                  <${p} text=${e.provider} />
                </a>`,tool:t`<code><${p} text=${e.tool} /></code>`}):n("One of yaya’s own tools.")}
        </small>
      </div>
    </div>
    <section class="box" aria-label=${n("Description")}>
      <header><h2>${n("Description")}</h2></header>
      <div class="body">
        <div class="quoted"><${U} text=${e.description} /></div>
        <details>
          <summary>${n("Schema")}</summary>
          <${O} text=${E(e.input_schema)} label=${n("Schema of its arguments")} />
        </details>
      </div>
    </section>
    <section class="box form" aria-label=${n("Try it")}>
      <header>
        <h2>${n("Try it")}</h2>
        ${L&&s&&t`<span class="seg end" role="group" aria-label=${n("Edit as")}>
          <button type="button" aria-pressed=${!o} onClick=${()=>r(!1)}>
            ${n("Form")}
          </button>
          <button type="button" aria-pressed=${o} onClick=${()=>o||m()}>JSON</button>
        </span>`}
      </header>
      ${e.for_agents?t`<${k}>${n("It works only in a conversation.")}<//>`:L?t`<form class="body" onSubmit=${u=>u.preventDefault()}>
              ${o?t`<${N} label=${n("Arguments (JSON)")}>
                    ${u=>t`<textarea
                        id=${u}
                        class="code"
                        rows="8"
                        spellcheck="false"
                        value=${c}
                        onInput=${y(d)}></textarea>`}
                  <//>`:s?.length===0?t`<p class="faint">${n("It takes no arguments.")}</p>`:s?.map(u=>t`<${K}
                          key=${u.name}
                          field=${u}
                          value=${i.get(u.name)}
                          set=${v=>$(u.name,v)} />`)}
              <div class="buttons"><${C} kind="primary" run=${g}>${n("Call it")}<//></div>
            </form>`:t`<${k} icon="lock">
              ${n("This device cannot call tools: it needs tools:call and approvals:answer.")}
            <//>`}
    </section>
    ${l&&t`<section class="box" aria-label=${n("Result")}>
      <header>
        <h2>${n("Result")}</h2>
        <${W} state=${l.ok?"ok":"failed"} />
        ${l.kind&&t`<span class="badge">${h(l.kind)}</span>`}
        <span class="faint end">${G(l.took_ms)}</span>
      </header>
      <div class="body">
        ${!l.ok&&t`<p class="problem"><${p} text=${l.brief} max=${300} /></p>`}
        <${V} envelope=${l} />
        ${l.structured&&t`
          <h3>${n("Structured")}</h3>
          <${O} text=${E(l.structured)} label=${n("Structured result")} />
        `}
        ${(l.artifacts??[]).map(u=>t`<${oe} artifact=${u} />`)}
      </div>
    </section>`}
  <//>`}function oe({artifact:e}){let[s,i]=f(""),a=async()=>{let o=await T("GET",`/api/tools/artifacts/${J(e.id)}`);i(new TextDecoder().decode(Uint8Array.from(atob(o.data),r=>r.charCodeAt(0))))};return t`
    <p class="artifact">
      📄 <code>${h(e.id)}</code> <${C} kind="small" run=${a}>
        ${n("Show its beginning")}
      <//>
    </p>
    ${s&&t`<${O} text=${h(s,!0)} label=${n("Artifact")} />`}
  `}export{te as default};
