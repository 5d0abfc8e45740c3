import{a as y}from"./chunk-IY4UA5QU.js";import{B as w,I as o,T as m,U as b,X as v,ba as $,c as l,d as i,h as p,u as g}from"./chunk-DX5UZMM6.js";import{h as e}from"./chunk-7KQRHSI2.js";function R({changes:k,done:u,cancel:c,added:x=[],first:A}){let[s,d]=p(k),[h,T]=p(new Map),C=t=>{let a=s.filter(r=>r!==t);d(a),a.length||u()},D=async t=>{let a=new Map(h),r=s.filter(n=>!t.includes(n));for(let n of t){let f;try{f=await A?.(),await l("POST",`/api/mcp/changes/${i(n.id)}/apply`)}catch(E){await f?.(),a.set(n.id,w(E)),r.push(n)}}T(a),d(r),r.length||u()};return o`<${y}
    wide
    title=${s.length===1?e("This would run"):e("These {n} would run",{n:s.length})}
    onClose=${c}>
    <p>
      ${e("yaya starts these on this machine, as you, or talks to them. Agree only to what you know.")}
    </p>
    <ul class="plain changes">
      ${s.map(t=>o`<li key=${t.id}>
          <b><${m} text=${t.server} /></b> <small class="muted">
            ${t.action==="add"?e("new"):e("changed")}
          </small>
          <${b}
            all
            text=${t.runs}
            label=${e("What {server} would run",{server:g(t.server)})} />
          ${(t.notes??[]).map(a=>o`<p class="muted"><${m} text=${a} max=${300} /></p>`)}
          ${x.map(a=>o`<p class="muted">${a}</p>`)}
          <${v} error=${h.get(t.id)} />
          ${s.length>1&&o`<${$}
            kind="small"
            run=${async()=>{await l("DELETE",`/api/mcp/changes/${i(t.id)}`).catch(()=>{}),C(t)}}>
            ${e("Leave out")}
          <//>`}
        </li>`)}
    </ul>
    <div class="buttons">
      <button type="button" onClick=${c}>${e("Cancel")}</button>
      <${$} arm kind="primary" run=${()=>D(s)}>
        ${s.length===1?e("Approve"):e("Approve all")}
      <//>
    </div>
  <//>`}export{R as a};
