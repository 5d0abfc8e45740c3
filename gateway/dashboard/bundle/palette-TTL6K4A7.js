import{a as V}from"./chunk-OFM2GSUS.js";import{a as F}from"./chunk-IY4UA5QU.js";import{a as K}from"./chunk-43UXHYUF.js";import{B as I,E as b,I as u,J as A,K as U,L as W,M as j,N as M,P as H,Q as q,R as B,c as D,d as N,h as x,j as E,l as P,m as G,o as C,p as h,q as d,s as $,u as w}from"./chunk-DX5UZMM6.js";import{c as R,d as L,g as T,h as s,i as y}from"./chunk-7KQRHSI2.js";var Q=9,S={commands:s("Commands"),places:s("Go to"),servers:s("Servers"),tools:s("Tools"),sessions:s("Sessions"),devices:s("Devices"),plugins:s("Plugins"),settings:s("Settings")},O=Object.keys(S),_={">":["commands"],"@":["servers","tools"],"#":["sessions"]};function z(){let p=h("config:read"),t=$(p?"/api/mcp/servers":null,["servers"]).data,a=$(p?"/api/tools":null,["tools"]).data,l=$(h("sessions:read")?"/v1/sessions?limit=100":null,["sessions"]),c=$(h("devices:read")?"/api/devices":null,["devices"]).data,n=$(p?"/api/plugins":null,["plugins","config"]).data?.plugins,i=$(p?"/api/settings":null,["config"]).data;return G(()=>{let m=h("config:write"),r=[];h("sessions:write")&&r.push({group:"commands",icon:"session",name:s("New session"),hint:"",to:d("chat","new")}),h("devices:approve")&&r.push({group:"commands",icon:"device",name:s("Add a device"),hint:"",to:d("devices")}),m&&r.push({group:"commands",icon:"plus",name:s("Add a server"),hint:"",to:d("servers","","new")});for(let e of V)r.push({group:"commands",icon:"sun",name:s("Theme: {now}",{now:e.title}),hint:"",run:async()=>(H(e.at),s("Theme: {now}",{now:e.title}))});for(let e of R.filter(k=>k.at!==L()))r.push({group:"commands",icon:"settings",name:s("Language: {name}",{name:e.name}),hint:"",run:async()=>(T(e.at),s("Language: {name}",{name:e.name}))});for(let e of q.filter(k=>h(k.needs)))r.push({group:"places",icon:e.icon,name:e.title,hint:"",to:d(e.at)});for(let e of t??[])r.push({group:"servers",icon:"server",name:e.name,hint:b(e.state),to:d("servers",e.name)}),m&&!["disabled","waiting"].includes(e.state)&&r.push({group:"commands",icon:"restart",name:s("Restart {server}",{server:e.name}),hint:b(e.state),run:async()=>(await D("POST",`/api/mcp/servers/${N(e.name)}/restart`),s("{server} restarts.",{server:w(e.name)}))});for(let e of a??[])r.push({group:"tools",icon:"tool",name:e.name,hint:e.title??"",to:d("tools",e.name)});for(let e of l.data?.sessions??[])r.push({group:"sessions",icon:"session",name:e.title||e.id,hint:b(e.status==="active"?e.state:e.status),to:d("chat",e.id)});for(let e of c??[])r.push({group:"devices",icon:"device",name:e.label||e.device_id,hint:b(e.status),to:d("devices")});for(let e of n??[])r.push({group:"plugins",icon:"plugin",name:e.name,hint:b(e.status),to:d("plugins",e.name)});for(let e of i??[])r.push({group:"settings",icon:"settings",name:e.key,hint:e.doc??"",to:d("config",e.key)});return r},[t,a,l.data,c,n,i])}function J(p,t){let a=Object.hasOwn(_,t[0]??"")?_[t[0]]:null,l=(a?t.slice(1):t).toLowerCase().split(/\s+/).filter(Boolean),c=n=>!n.name.toLowerCase().startsWith(l[0]??"");return O.filter(n=>!a||a.includes(n)).flatMap(n=>p.filter(i=>i.group===n&&(l.length>0||a||n==="commands"||n==="places")&&l.every(m=>i.name.toLowerCase().includes(m))).sort((i,m)=>Number(c(i))-Number(c(m))).slice(0,l.length||!a?Q+(n==="places"?10:0):50))}K("palette");function $e(){let p=z(),[t,a]=x(""),[l,c]=x(0),n=P(null),i=J(p,t),m=Math.min(l,i.length-1),r=()=>C.over.set("");E(()=>{let o=n.current,f=document.activeElement;return o?.showModal(),()=>{o?.close(),f instanceof HTMLElement&&f.focus()}},[]),E(()=>{n.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({block:"nearest"})},[m,t]);let e=o=>{o&&(r(),o.to!==void 0?location.hash=o.to:o.run?.().then(M,f=>M(I(f),"error")))},k=o=>{let f={ArrowDown:1,ArrowUp:-1}[o.key];if(f&&i.length)c((m+f+i.length)%i.length);else if(o.key==="Enter"&&!o.isComposing)e(i[m]);else return;o.preventDefault()};return u`<dialog
    ref=${n}
    class="palette"
    aria-label=${s("Search or run")}
    onClick=${o=>o.target===n.current&&r()}
    onCancel=${o=>{o.preventDefault(),r()}}>
    <header>
      <${A} of="search" />
      <input
        role="combobox"
        aria-label=${s("Search or run")}
        aria-expanded="true"
        aria-controls="found"
        aria-autocomplete="list"
        aria-activedescendant=${i.length?`found-${m}`:void 0}
        autocomplete="off"
        spellcheck="false"
        maxlength="200"
        value=${t}
        onInput=${o=>{a(o.target.value),c(0)}}
        onKeyDown=${k} />
      <kbd>Esc</kbd>
    </header>
    <div role="listbox" id="found" aria-label=${s("Found")} tabindex="-1">
      ${O.map(o=>{let f=i.flatMap((g,v)=>g.group===o?[{e:g,i:v}]:[]);return f.length>0&&u`<div role="group" aria-label=${S[o]} key=${o}>
            <h3 aria-hidden="true">${S[o]}</h3>
            ${f.map(({e:g,i:v})=>u`<div
                  key=${v}
                  id=${`found-${v}`}
                  role="option"
                  aria-selected=${v===m}
                  onMouseMove=${()=>v!==m&&c(v)}
                  onClick=${()=>e(g)}>
                  <${A} of=${g.icon} />
                  <b class="cut"><bdi>${w(g.name).slice(0,120)}</bdi></b>
                  <span class="cut">${w(g.hint).slice(0,80)}</span>
                </div>`)}
          </div>`})}
    </div>
    ${i.length===0&&u`<p class="empty" role="status">${s("Nothing is called that.")}</p>`}
    <footer class="nophone">
      <span>${y("{keys} move",{keys:u`<kbd>↑</kbd> <kbd>↓</kbd>`})}</span>
      <span>${y("{key} run",{key:u`<kbd>↵</kbd>`})}</span>
      <span class="end">
        ${y("Start with {commands} for commands, {names} servers and tools, {sessions} sessions",{commands:u`<kbd>></kbd>`,names:u`<kbd>@</kbd>`,sessions:u`<kbd>#</kbd>`})}
      </span>
    </footer>
  </dialog>`}function be(){let p=W.use(),t=(a,l)=>u`<dt>${a.map((c,n)=>u`${n>0&&" "}<kbd>${c}</kbd>`)}</dt><dd>${l}</dd>`;return u`<${F} title=${s("Keys")} onClose=${()=>C.over.set("")}>
    <dl>
      ${t(["Ctrl K"],s("Search or run"))}
      ${t(["/"],s("Filter the view"))}
      ${t(["c"],s("New session"))}
      ${U.map(([a,l])=>{let c=B(l);return c&&h(c.needs)&&t(["g",a],c.title)})}
      ${t(["Esc"],s("Close what is on top"))}
      ${t(["?"],s("This list"))}
    </dl>
    <label>
      <input
        type="checkbox"
        checked=${p}
        onChange=${a=>j(a.target.checked)} />
      ${" "}
      ${s("Single keys work in this browser")}
    </label>
  <//>`}export{be as Keys,$e as Palette};
