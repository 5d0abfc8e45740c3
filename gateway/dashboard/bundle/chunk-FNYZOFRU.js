import{a as K,b as ot}from"./chunk-WKYUETWH.js";import{a as lt}from"./chunk-5YHDVP7A.js";import{d as rt,e as nt}from"./chunk-ORFBRK3V.js";import{a as M}from"./chunk-ZAOT4YSA.js";import{a as at}from"./chunk-IY4UA5QU.js";import{a as st}from"./chunk-43UXHYUF.js";import{$ as ut,D as x,E as et,I as n,J as C,N as P,T as p,U as j,X as it,Y as ct,Z as q,_ as $t,b as D,ba as H,ca as pt,d as Y,da as dt,h as m,j as h,k as Z,l as w,p as L,q as I,r as R,s as A,u as v,x as tt,y as S,z as N}from"./chunk-DX5UZMM6.js";import{h as e,i as X,j as y}from"./chunk-7KQRHSI2.js";var ft=12,E=t=>t.outcome==="ok"?"good":["cancelled","canceled"].includes(t.outcome)?"off":"bad",U=t=>t.outcome==="ok"?e("OK"):et(t.outcome);function B(t){let l=new Date(t);return`${l.toLocaleTimeString("en-GB")}.${String(l.getMilliseconds()).padStart(3,"0")}`}function mt({calls:t,open:l,choose:a}){let i=w(null),[o,r]=m({top:0,height:600,row:36}),[c,$]=m(Number(l)||0),[f,g]=m(!1),u=w(0),k=t.list.at(-1)?.id??0;(!u.current||!f&&o.top<o.row)&&(u.current=k);let d=t.list.length;for(;d>0&&t.list[d-1].id>u.current;)d--;let J=t.list.length-d,z=s=>t.list[d-1-s],W=Math.max(0,Math.floor(o.top/o.row)-ft),V=Math.min(d,Math.ceil((o.top+o.height)/o.row)+ft),_=()=>{let s=i.current;if(!s)return;let O=s.querySelector('[role="option"]')?.getBoundingClientRect().height||36;r({top:s.scrollTop,height:s.clientHeight,row:O}),s.scrollTop+s.clientHeight>s.scrollHeight-20*O&&t.older()};Z(_,[d===0]),h(()=>{let s=new ResizeObserver(_);return i.current&&s.observe(i.current),()=>s.disconnect()},[]);let bt=()=>{for(let s=0;s<d;s++)if(z(s).id===c)return s;return-1},yt=s=>{if(s.ctrlKey||s.metaKey||s.altKey)return;let O={ArrowDown:1,j:1,ArrowUp:-1,k:-1}[s.key],Q=bt(),T=O?Math.max(0,Math.min(d-1,Q+O)):s.key==="Home"?0:s.key==="End"?d-1:-1,b=i.current;if(T>=0&&b)$(z(T).id),T*o.row<b.scrollTop?b.scrollTop=T*o.row:(T+1)*o.row>b.scrollTop+b.clientHeight&&(b.scrollTop=(T+1)*o.row-b.clientHeight);else if(s.key==="Enter"&&Q>=0)a(c);else return;s.preventDefault(),s.stopPropagation()},F=[];for(let s=W;s<V;s++)F.push(z(s));return n`<div
    class="calls"
    onPointerEnter=${()=>g(!0)}
    onPointerLeave=${()=>g(!1)}>
    ${J>0&&n`<button
      type="button"
      class="small fresh"
      onClick=${()=>{u.current=k,i.current&&(i.current.scrollTop=0),_()}}>
      ${y(J,"{n} new call","{n} new calls")}
    </button>`}
    <div
      class="scroller"
      ref=${i}
      role="listbox"
      aria-label=${e("Calls, newest first")}
      tabindex="0"
      aria-activedescendant=${F.some(s=>s.id===c)?`f${c}`:void 0}
      onScroll=${_}
      onKeyDown=${yt}>
      <div role="presentation" style=${{height:W*o.row+"px"}}></div>
      ${F.map(s=>n`<div
            key=${s.id}
            id=${`f${s.id}`}
            role="option"
            aria-selected=${String(s.id)===l}
            class=${s.id===c?"call active":"call"}
            onClick=${()=>{$(s.id),a(s.id)}}>
            <span class="faint" title=${x(s.time)}>${B(s.time)}</span>
            <span class="cut who"><${p} text=${s.client||s.origin} max=${40} /></span>
            <span class="cut what">
              <span class="faint"><${p} text=${s.server||"yaya"} max=${40} /></span>
              ${" "}
              <${p} text=${s.tool} max=${80} />
            </span>
            <span class="num">${N(s.took_ms)}</span>
            <span class="num faint size">${S(s.result_bytes)}</span>
            <span class=${"state "+E(s)}>
              <span class=${"dot "+E(s)}></span>
              <span class="cap cut">${U(s)}</span>
            </span>
          </div>`)}
      <div role="presentation" style=${{height:(d-V)*o.row+"px"}}></div>
    </div>
    <p class="faint foot">
      ${t.more?y(d,"{n} call, older ones as you scroll","{n} calls, older ones as you scroll"):y(d,"{n} call","{n} calls")}
    </p>
  </div>`}function G(t){try{return tt(JSON.parse(t))}catch{return v(t,!0)}}function wt(t,l){return t.method!=="tools/call"?e("Only calls of tools can be made again."):l?l.for_agents?e("The tool works only in a conversation."):!L("tools:call")||!L("approvals:answer")?e("This device cannot call tools: it needs tools:call and approvals:answer."):t.arguments_bytes>0&&!t.arguments?e("The arguments were not recorded."):t.arguments?.includes("****")?e("The arguments hold a secret, which is not recorded."):new TextEncoder().encode(t.arguments??"").length<t.arguments_bytes?e("The arguments were too long to be recorded whole."):"":e("The tool is not offered now.")}function vt({c:t,tool:l,done:a}){return n`<${at} wide title=${e("Call it again")} onClose=${a}>
    <p>
      ${X("{tool} runs with exactly these arguments. The call counts as approved by you.",{tool:n`<code><${p} text=${l.name} max=${128} /></code>`})}
    </p>
    <${j} all text=${G(t.arguments||"{}")} label=${e("Arguments, all of them")} />
    <div class="buttons">
      <button type="button" onClick=${a}>${e("Cancel")}</button>
      <${H}
        arm
        kind="primary"
        run=${async()=>{let o=await(await D("POST",`/api/tools/${Y(l.name)}/call`,{text:`{"arguments":${t.arguments||"{}"}}`})).json();a(),P(o.ok?e("The call took {time}.",{time:N(o.took_ms)}):e("The call failed: {error}",{error:v(o.brief).slice(0,200)}),o.ok?"check":"error")}}>
        ${e("Call it again")}
      <//>
    </div>
  <//>`}function ht({id:t,close:l}){let a=A(/^\d{1,15}$/.test(t)?`/api/traffic/${t}`:null,[]),i=w(null);return h(()=>{let o=document.activeElement;return i.current?.focus(),()=>{o instanceof HTMLElement&&o.focus()}},[]),n`<section
    class="drawer"
    aria-label=${e("Call")}
    ref=${i}
    tabindex="-1"
    onKeyDown=${o=>{o.key!=="Escape"||document.querySelector("dialog[open]")||(o.stopPropagation(),l())}}>
    <button type="button" class="icon shut" aria-label=${e("Close the call")} onClick=${l}>
      <${C} of="close" />
    </button>
    ${/^\d{1,15}$/.test(t)?n`<${ut} of=${a}>${o=>n`<${xt} c=${o} />`}<//>`:n`<${q}>${e("Call not found.")}<//>`}
  </section>`}function xt({c:t}){let l=A(L("config:read")?"/api/tools":null,["tools"]).data,[a,i]=m(!1),o=l?.find(c=>c.provider===(t.server??"")&&(c.tool||c.name)===t.tool),r=wt(t,o);return n`
    <header>
      <h2>
        <span class="faint"><${p} text=${t.server||"yaya"} max=${64} /></span> ${" "}
        <${p} text=${t.tool} max=${200} />
      </h2>
      <p class="flex">
        <span class=${"state "+E(t)}>
          <span class=${"dot "+E(t)}></span>
          <span class="cap">${U(t)}</span>
        </span>
        <span class="faint" title=${x(t.time)}>${B(t.time)}</span>
        <span class="faint">${N(t.took_ms)}</span>
      </p>
    </header>
    ${t.error&&n`<p class="problem"><${p} text=${t.error} max=${1e3} /></p>`}
    <h3 class="flex">
      ${e("Arguments")} <span class="faint end">${S(t.arguments_bytes)}</span>
      ${t.arguments&&n`<${M} text=${v(t.arguments,!0)} />`}
    </h3>
    ${t.arguments?n`<${j} text=${G(t.arguments)} label=${e("Arguments of the call")} />`:n`<p class="faint">${t.arguments_bytes?e("They were not recorded."):e("None.")}</p>`}
    <h3 class="flex">
      ${e("Result")} <span class="faint end">
        ${t.cut?e("{size}, cut",{size:S(t.result_bytes)}):S(t.result_bytes)}
      </span>
      ${t.result&&n`<${M} text=${v(t.result,!0)} />`}
    </h3>
    ${t.result?n`<${j} text=${G(t.result)} label=${e("Result of the call")} />`:n`<p class="faint">
          ${t.busy?e("There was too much traffic to record it."):t.result_bytes?e("It was not recorded."):e("None.")}
        </p>`}
    <h3>${e("Who")}</h3>
    <dl>
      <dt>${e("Client")}</dt>
      <dd>
        ${t.client?n`<${p} text=${`${t.client} ${t.client_version??""}`} max=${120} />`:v(t.origin)}
      </dd>
      <dt>${e("Caller")}</dt>
      <dd><${p} text=${t.principal||"–"} max=${120} /></dd>
      ${t.session&&n`
        <dt>${e("Session")}</dt>
        <dd>
          ${t.origin==="loop"?n`<a href=${I("chat",t.session)}><${p} text=${t.session} max=${80} /></a>`:t.origin==="api"&&t.session.startsWith("_bridge:")?e("the page"):n`<${p} text=${t.session} max=${80} />`}
        </dd>
      `}
      <dt>${e("Approval")}</dt>
      <dd>
        ${t.approval?e("A person approved this very call"):t.origin==="api"?e("The call counts as approved by its caller"):e("No person has approved this very call")}
      </dd>
      ${t.trace&&n`<dt>${e("Trace")}</dt><dd><code><${p} text=${t.trace} max=${64} /></code></dd>`}
      <dt>${e("Number")}</dt>
      <dd>${t.id}</dd>
    </dl>
    <div class="buttons">
      <button
        type="button"
        class="primary"
        disabled=${!!r}
        onClick=${()=>i(!0)}>
        <${C} of="replay" />
        ${e("Replay …")}
      </button>
      ${o&&n`<a class="button" href=${I("tools",o.name)}>${e("Open the tool")}</a>`}
      <${M} text=${v(JSON.stringify(t,null,2),!0)} label=${e("Copy all")} />
    </div>
    ${r&&n`<p class="faint">${r}</p>`}
    ${a&&o&&n`<${vt} c=${t} tool=${o} done=${()=>i(!1)} />`}
  `}st("traffic");var kt=10800,Tt=10,St=[[e("15 min"),15],[e("1 h"),60],[e("24 h"),1440],[e("All"),0]];function Ct(t){let l={span:0};for(let[,a,i,o]of t.matchAll(/(\w+):(?:"([^"]*)"|(\S+))/g)){let r=i??o;(a==="server"||a==="tool"||a==="client"||a==="principal")&&(l[a]=r),(a==="since"||a==="until")&&!Number.isNaN(Date.parse(r))&&(l[a]=r),a==="last"&&(l.span=Math.min(Number.parseInt(r,10)||0,525600))}return/(^|\s)failed(\s|$)/.test(t)&&(l.errors=!0),l}function gt(t){let l=i=>/\s/.test(i)?`"${i.replaceAll('"',"")}"`:i,a=["server","tool","client","principal","since","until"].filter(i=>t[i]).map(i=>`${i}:${l(t[i]??"")}`);return t.errors&&a.push("failed"),t.span&&a.push(`last:${t.span}`),a.join(" ")}async function Ot(t){let l=[],a=0;for(let o=0;o<Tt;o++){let c=await(await D("GET",`/api/traffic?${K({...t,before:a,full:!0,limit:1e3})}`)).json();if(l.unshift(...c.calls.map($=>JSON.stringify($))),a=c.calls[0]?.id??0,!c.more||!a)break}let i=URL.createObjectURL(new Blob([l.join(`
`)+`
`]));Object.assign(document.createElement("a"),{href:i,download:"calls.jsonl"}).click(),setTimeout(()=>URL.revokeObjectURL(i),1e4),P(y(l.length,"{n} call is exported.","{n} calls are exported."),"download")}function At({f:t,last:l}){let a=t.span||60,i=Math.max(1,Math.ceil(a/60))*60,o=K({server:t.server,tool:t.tool,client:t.client,...i>kt?{days:Math.ceil(a/1440)}:{step:i,slices:Math.min(60,a)}}),r=A(`/api/traffic/series?${o}`,[]);if(h(()=>{let u=setTimeout(r.reload,2e3);return()=>clearTimeout(u)},[l]),!r.data)return null;let{slices:c,total:$}=r.data,f={name:e("answered"),tone:"s1",values:c.map(u=>u.calls-u.errors)},g={name:e("failed"),tone:"se",values:c.map(u=>u.errors)};return n`<div class="low brush">
    <p class="flex">
      <span class="faint">
        ${t.span?e("Calls in this time"):e("Calls in the last hour")}
        ${r.data.partial?` (${e("not all")})`:""}
      </span>
      <${nt} lines=${[[f,String($.calls-$.errors)],[g,String($.errors)]]} />
    </p>
    <${rt}
      stacked
      label=${e("Calls by time")}
      times=${c.map(u=>Date.parse(u.ts))}
      lines=${[f,g]}
      show=${String} />
  </div>`}function Nt({f:t,set:l}){let[a,i]=m(t);h(()=>i(t),[gt(t)]);let o=(r,c)=>n`<${dt} label=${c}>
      ${$=>n`<input
          id=${$}
          type=${r==="server"?"search":"text"}
          value=${a[r]??""}
          spellcheck="false"
          maxlength="256"
          onInput=${pt(f=>i({...a,[r]:f}))} />`}
    <//>`;return n`<form
    class="filters"
    aria-label=${e("Filters")}
    onSubmit=${r=>{r.preventDefault(),l(a)}}>
    ${o("server",e("Server"))} ${o("tool",e("Tool"))} ${o("client",e("Client"))}
    <button type="submit"><${C} of="filter" />${e("Filter")}</button>
    <div class="seg" role="group" aria-label=${e("Outcome")}>
      ${[!1,!0].map(r=>n`<button
            type="button"
            aria-pressed=${!!t.errors===r}
            onClick=${()=>l({...a,errors:r})}>
            ${r?e("Failed"):e("All calls")}
          </button>`)}
    </div>
    <div class="seg" role="group" aria-label=${e("Time")}>
      ${St.map(([r,c])=>n`<button
            type="button"
            aria-pressed=${t.span===c&&!t.since}
            onClick=${()=>l({...a,span:c,since:void 0,until:void 0})}>
            ${r}
          </button>`)}
    </div>
  </form>`}function Et({rest:[t="",l=""]}){let[,a]=m(0),i=w(null),o=Ct(t);h(()=>{let{span:$,...f}=o,g=$?new Date(Date.now()-$*6e4).toISOString():f.since,u=new ot({...f,since:g},500,()=>a(k=>k+1));return i.current=u,a(k=>k+1),()=>u.close()},[t]);let r=i.current,c=()=>R("traffic",...t?[t]:[]);return n`<${ct}
    title=${e("Traffic")}
    actions=${n`<${H} run=${()=>Ot(r?.filter??{})}>
      <${C} of="download" />
      ${e("Export")}
    <//>`}>
    <${Nt}
      f=${o}
      set=${$=>R("traffic",gt($))} />
    <${it} error=${r?.error} />
    ${r&&r.bodies!=="all"&&n`<p class="faint">
      ${r.bodies==="errors"?e("Arguments and results are recorded of failed calls only: see traffic.bodies in Settings."):r.why?e("Arguments and results are not recorded ({why}): see traffic.bodies in Settings.",{why:lt("traffic",r.why)}):e("Arguments and results are not recorded: see traffic.bodies in Settings.")}
    </p>`}
    ${r&&r.lost>0&&n`<p class="notice">
      ${y(r.lost,"{n} call is missing from the record.","{n} calls are missing from the record.")}
    </p>`}
    ${o.since&&o.until?n`<p class="faint">
          ${e("Calls from {from} to {to}",{from:x(o.since),to:x(o.until)})}
        </p>`:n`<${At} f=${o} last=${r?.list.at(-1)?.id??0} />`}
    <div class=${l?"split open":"split"}>
      ${!r||!r.ready&&!r.error?n`<${$t} rows=${8} />`:r.list.length?n`<${mt}
              key=${t}
              calls=${r}
              open=${l}
              choose=${$=>R("traffic",t,String($))} />`:n`<${q} icon="traffic">
              ${t?e("No calls match."):e("No calls are recorded yet. Calls of clients, agents and this page appear here.")}
            <//>`}
      ${l&&n`<${ht} key=${l} id=${l} close=${c} />`}
    </div>
  <//>`}export{Ct as a,gt as b,Et as c};
