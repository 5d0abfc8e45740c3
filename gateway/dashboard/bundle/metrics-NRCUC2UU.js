import{b as g}from"./chunk-FNYZOFRU.js";import"./chunk-WKYUETWH.js";import"./chunk-5YHDVP7A.js";import{c as G,d as N,e as R}from"./chunk-ORFBRK3V.js";import{a as U}from"./chunk-ZAOT4YSA.js";import"./chunk-IY4UA5QU.js";import{a as P}from"./chunk-43UXHYUF.js";import{$ as B,I as i,T as S,Y as W,Z as k,ca as z,h as M,j as L,o as I,p as y,q as A,r as v,s as _,y as O,z as h}from"./chunk-DX5UZMM6.js";import{e as w,h as e}from"./chunk-7KQRHSI2.js";var C=[{at:"30m",title:e("30 min"),minutes:30,step:2e4,n:90,series:{step:"30",slices:"60"}},{at:"24h",title:e("24 h"),minutes:1440,step:72e4,n:120,series:{step:"1440",slices:"60"}},{at:"7d",title:e("7 d"),minutes:10080,step:504e4,n:120,series:{step:"10800",slices:"56"}},{at:"30d",title:e("30 d"),minutes:43200,step:216e5,n:120,series:{days:"30"}}];function j(s,a,r){let o=Math.floor(r/a.step)-a.n+1,c=Array(a.n).fill(null);for(let l of s){let u=Math.floor(Date.parse(l.ts)/a.step)-o;u>=0&&u<a.n&&(c[u]=l)}return{times:c.map((l,u)=>(o+u)*a.step),slots:c}}var x=(s,a)=>s.map(r=>r&&a(r));function D(s,a){let r=null;return s.map(n=>{let o=r;if(r=n??r,!n||!o)return null;let c=(Date.parse(n.ts)-Date.parse(o.ts))/1e3,l=a(n)-a(o);return c>0&&l>=0?l/c:null})}var E=[{at:"server",title:e("By server"),name:e("Server")},{at:"tool",title:e("By tool"),name:e("Tool")},{at:"client",title:e("By client"),name:e("Client")}],H=50;function q({of:s,by:a,set:r,w:n,server:o}){let c=E.find(t=>t.at===a)??E[0],l=s.groups[0]?.calls??0,u=(t,$)=>A("traffic",g({...o&&{server:o},...t&&{[a]:t},errors:$,span:n.minutes})),p=(t,$)=>`${(t/Math.max(1,$)*100).toLocaleString(w(),{maximumFractionDigits:1})} %`;return i`<section class="box" aria-label=${c.title}>
    <header>
      <h2>${c.title}</h2>
      <div class="seg end" role="group" aria-label=${e("Group calls")}>
        ${E.filter(t=>!o||t.at!=="server").map(t=>i`<button type="button" aria-pressed=${t===c} onClick=${()=>r(t.at)}>
              ${t.name}
            </button>`)}
      </div>
    </header>
    ${s.groups.length?i`<table class="list" role="table" aria-label=${c.title}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${c.name}</th>
              <th role="columnheader" class="num">${e("Calls")}</th>
              <th role="columnheader" class="wide">${e("Share")}</th>
              <th role="columnheader" class="num">p50</th>
              <th role="columnheader" class="num">p95</th>
              <th role="columnheader" class="num">p99</th>
              <th role="columnheader" class="num" title=${e("Size of the arguments")}>
                ${e("In")}
              </th>
              <th role="columnheader" class="num" title=${e("Size of the results")}>${e("Out")}</th>
              <th role="columnheader" class="num">${e("Failed")}</th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${s.groups.slice(0,H).map(t=>i`<tr role="row" key=${t.name}>
                    <td role="cell" class="p1">
                      <a class="strong" href=${u(t.name,!1)}>
                        <${S} text=${t.name||e("yaya itself")} max=${64} />
                      </a>
                    </td>
                    <td role="cell" class="num p2">${t.calls.toLocaleString(w())}</td>
                    <td role="cell" class="wide">
                      <span class="flex share">
                        <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                          <rect
                            class="f s1"
                            width=${(t.calls/l*100).toFixed(1)}
                            height="4" />
                        </svg>
                        <span class="faint">${p(t.calls,s.total.calls)}</span>
                      </span>
                    </td>
                    <td role="cell" class="num">${h(t.p50_ms)}</td>
                    <td role="cell" class="num">${h(t.p95_ms)}</td>
                    <td role="cell" class="num">${h(t.p99_ms)}</td>
                    <td role="cell" class="num">${O(t.arguments_bytes)}</td>
                    <td role="cell" class="num">${O(t.result_bytes)}</td>
                    <td role="cell" class="num">
                      ${t.errors?i`<a class="bad" href=${u(t.name,!0)}>
                            ${p(t.errors,t.calls)}
                          </a>`:"0 %"}
                    </td>
                  </tr>`)}
          </tbody>
        </table>`:i`<${k}>${e("There were no calls in this time.")}<//>`}
  </section>`}P("servers");P("metrics");var J=1e4,b=s=>s.toLocaleString(w(),{maximumFractionDigits:s<10?2:0}),K=s=>`${b(s)} MiB`,Q=s=>`${b(s)} %`;function F({title:s,label:a,times:r,lines:n,show:o,cross:c,stacked:l,open:u,now:p}){let t=$=>$.values.findLast(d=>d!==null)??null;return i`<section class="box" aria-label=${s}>
    <header>
      <h2>${s}</h2>
      <${R} lines=${n.map(($,d)=>{let f=t($);return[$,p?p[d]:f===null?"–":o(f)]})} />
    </header>
    <div class="body">
      <${N}
        label=${a}
        times=${r}
        lines=${n}
        show=${o}
        cross=${c}
        stacked=${l}
        open=${u} />
    </div>
  </section>`}function X(s,a,r,n){let o=new URLSearchParams({...s.series,by:r});a&&o.set("server",a);let c=_(y("audit:read")?`/api/traffic/series?${o.toString()}`:null,[]);return L(()=>{let l=setTimeout(c.reload,J);return()=>clearTimeout(l)},[n]),c}function Z({of:s,w:a,server:r,cross:n}){let o=s.slices.map(m=>Date.parse(m.ts)),c=Date.parse(s.from),l=m=>!s.partial||o[m]>=c,u=m=>s.slices.map((V,Y)=>l(Y)?m(V):null),p=m=>v("traffic",g({...r&&{server:r},span:0,since:new Date(o[m]).toISOString(),until:new Date(o[m+1]??Date.now()).toISOString()})),{calls:t,errors:$,p50_ms:d,p95_ms:f,p99_ms:T}=s.total;return i`
    <${F}
      title=${e("Calls")}
      label=${e("Calls by time")}
      stacked
      cross=${n}
      open=${y("audit:read")?p:void 0}
      times=${o}
      lines=${[{name:e("answered"),tone:"s1",values:u(m=>m.calls-m.errors)},{name:e("failed"),tone:"se",values:u(m=>m.errors)}]}
      now=${[b(t-$),b($)]}
      show=${b} />
    <${F}
      title=${e("Time to answer")}
      label=${e("Time to answer by time")}
      cross=${n}
      open=${p}
      times=${o}
      lines=${[{name:"p50",tone:"s1",values:u(m=>m.calls?m.p50_ms:null)},{name:"p95",tone:"s2",values:u(m=>m.calls?m.p95_ms:null)},{name:"p99",tone:"s3",values:u(m=>m.calls?m.p99_ms:null)}]}
      now=${t?[h(d),h(f),h(T)]:["–","–","–"]}
      show=${h} />
  `}function ee({all:s,w:a,cross:r}){let{times:n,slots:o}=j(s,a,Date.now());return[{title:e("Memory"),label:e("Resident memory by time"),lines:[{name:e("resident"),tone:"s2",fill:!0,values:x(o,l=>l.rss_bytes/2**20)}],show:K},{title:e("CPU"),label:e("CPU time by time"),lines:[{name:e("of one core"),tone:"s1",fill:!0,values:D(o,l=>l.cpu_seconds*100)}],show:Q},{title:e("Servers and sessions"),label:e("Servers that work, and MCP sessions, by time"),lines:[{name:e("servers ready"),tone:"s2",values:x(o,l=>l.servers_ready)},{name:e("MCP sessions"),tone:"s1",values:x(o,l=>l.mcp_sessions)}],show:b},{title:e("Tokens a minute"),label:e("Tokens of models a minute, by time"),lines:[{name:e("to models"),tone:"s1",values:D(o,l=>l.tokens_in*60)},{name:e("from models"),tone:"s4",values:D(o,l=>l.tokens_out*60)}],show:b}].map(l=>i`<${F} key=${l.title} ...${l} times=${n} cross=${r} />`)}function te({w:s,server:a}){let r=_(y("config:read")?"/api/mcp/servers":null,["servers"]).data;return i`
    <span class="seg" role="group" aria-label=${e("Time")}>
      ${C.map(n=>i`<button
            type="button"
            aria-pressed=${n===s}
            onClick=${()=>v("metrics",n.at,...a?[a]:[])}>
            ${n.title}
          </button>`)}
    </span>
    ${r&&i`<select
      class="pick"
      aria-label=${e("Server")}
      onChange=${z(n=>v("metrics",s.at,...n?[n]:[]))}>
      <option value="" selected=${!a}>${e("All servers")}</option>
      ${r.map(n=>i`<option value=${n.name} selected=${n.name===a}>
            <${S} text=${n.name} max=${48} />
          </option>`)}
    </select>`}
  `}function se({rest:[s="",a=""]}){let r=C.find($=>$.at===s)??C[0],n=_(`/api/metrics?window=${r.at}`,[]),[o,c]=M([]),[l,u]=M(a?"tool":"server"),p=G();L(()=>{let $=I.live?.join("dashboard:metrics",{event:(d,f)=>d==="reading"&&c(T=>[...T,f.reading].slice(-360))});return()=>$?.leave()},[]);let t=X(r,a,l,o.at(-1)?.calls??0);return i`<${W}
    title=${e("Metrics")}
    actions=${i`
      <span class="faint nophone mono">GET /metrics</span>
      <span class="nophone">
        <${U} text=${location.origin+"/metrics"} label=${e("Copy address")} />
      </span>
    `}>
    <div class="filters"><${te} w=${r} server=${a} /></div>
    <div class="cols c11">
      ${y("audit:read")?i`<${B} of=${t}>
            ${$=>i`<${Z} of=${$} w=${r} server=${a} cross=${p} />`}
          <//>`:i`<${k} icon="lock">
            ${e("Calls are shown to those who may read the audit log.")}
          <//>`}
      ${!a&&i`<${B} of=${n}>
        ${$=>{let d=$.at(-1)?.ts??"";return i`<${ee}
            all=${$.concat(o.filter(f=>f.ts>d))}
            w=${r}
            cross=${p} />`}}
      <//>`}
    </div>
    ${t.data&&i`<${q} of=${t.data} by=${l} set=${u} w=${r} server=${a} />`}
    <p class="faint">
      ${!a&&e("Memory, CPU, servers, sessions and tokens are known since yaya was started.")}
      ${" "}
      ${t.data?.partial&&e("There were more calls than a view reads: the earliest are missing.")}
    </p>
  <//>`}export{se as default};
