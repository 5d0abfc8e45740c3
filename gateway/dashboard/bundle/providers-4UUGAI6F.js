import{a as E,b as D,c as l,d as k,e as q}from"./chunk-2TAB5IYM.js";import{b as A}from"./chunk-IY4UA5QU.js";import{a as C}from"./chunk-QK6JMVOZ.js";import{a as x}from"./chunk-43UXHYUF.js";import{$ as L,I as t,J as w,T as h,Y as I,ba as v,c as u,ca as S,d as g,h as f,p as P,q as b,s as y,u as c}from"./chunk-DX5UZMM6.js";import{h as e,i as T,j as M}from"./chunk-7KQRHSI2.js";x("servers");x("models");function O({rows:s,write:n}){let i=(y("/v1/sessions?limit=100",["sessions"]).data?.sessions??[]).filter(o=>o.state!=="idle").length,a=s.find(o=>o.active),[r,$]=f("");return t`<section class="box" aria-label=${e("Model in use")}>
    <header>
      <h2>${e("Model in use")}</h2>
      <span class="faint">${e("Every session uses it from its next step on.")}</span>
      <a class="end" href=${b("chat")}>
        ${i?M(i,"{n} session works now","{n} sessions work now"):e("Sessions")}
      </a>
    </header>
    <div class="body flex use">
      <select aria-label=${e("Model in use")} disabled=${!n} onChange=${S($)}>
        ${!a&&t`<option value="" selected>${e("None")}</option>`}
        ${s.map(o=>t`<option value=${o.id} selected=${(r||a?.id)===o.id}>
              ${c(l(o)).slice(0,64)}
              ${o.config.model!==void 0&&` · ${c(k(o.config.model)).slice(0,64)}`}
            </option>`)}
      </select>
      ${n&&t`<${v}
        kind="primary"
        disabled=${!r||r===a?.id}
        run=${()=>u("PATCH","/api/llm-providers/active",{name:r})}>
        ${e("Use this model")}
      <//>`}
    </div>
    ${a?.plugin==="llm-echo"&&t`<p class="faint under">
      ${e("The model that is built in repeats what you write. It needs no network, and is good for a look around.")}
    </p>`}
  </section>`}var R=({r:s,write:n,tested:d,test:i,edit:a})=>t`<tr role="row">
    <td role="cell" class="p1">
      <span class="flex">
        <${C} name=${l(s)} />
        <span class="two">
          <span>
            <b class="strong"><${h} text=${l(s)} max=${64} /></b>
            ${s.active&&t` <span class="badge good">${e("in use")}</span>`}
          </span>
          <small class="mono"><${h} text=${s.id} max=${64} /></small>
        </span>
      </span>
    </td>
    <td role="cell" class="p4">
      <code><${h} text=${k(s.config.model)||"–"} max=${48} /></code>
    </td>
    <td role="cell" class="wide">
      ${s.plugin==="llm-echo"?e("none needed"):s.config.api_key?e("sealed"):e("none")}
    </td>
    <td role="cell" class="p3">
      ${d?t`<${E} of=${d} />`:t`<span class="faint">${e("not tested")}</span>`}
    </td>
    <td role="cell" class="p2">
      ${n&&t`<span class="acts">
        <${v}
          kind="small"
          label=${e("Test {name}",{name:c(l(s))})}
          run=${()=>i(s)}>
          ${e("Test")}
        <//>
        <button
          type="button"
          class="small"
          aria-label=${e("Change {name}",{name:c(l(s))})}
          onClick=${()=>a(s)}>
          ${e("Change")}
        </button>
        ${!s.active&&t`<${A}
          kind="small quiet sq danger"
          label=${e("Delete {name}",{name:c(l(s))})}
          yes=${e("Delete the provider")}
          ask=${T("{name} and its settings are deleted, its key with them.",{name:t`<b><${h} text=${l(s)} /></b>`})}
          run=${()=>u("DELETE",`/api/llm-providers/${g(s.id)}`)}>
          <${w} of="trash" />
        <//>`}
      </span>`}
    </td>
  </tr>`;function U({rest:[s=""]}){let n=y("/api/llm-providers",["config","plugins"]),[d,i]=f(null),[a,r]=f(new Map),$=P("config:write"),o=async m=>{let p=await u("POST",`/api/llm-providers/${g(m.id)}/test?measure=true&timeout_ms=30000`);r(N=>new Map(N).set(m.id,p))};return t`<${I}
    title=${e("Models")}
    actions=${$&&t`
      <${v} kind="nophone" run=${()=>Promise.all((n.data??[]).map(o))}>
        <${w} of="play" />
        ${e("Test all")}
      <//>
      <a class="button primary" href=${b("providers","add")}>
        <${w} of="plus" />
        ${e("Add a provider")}
      </a>
    `}>
    <${L} of=${n}>
      ${m=>t`
        <${O} rows=${m} write=${$} />
        ${$&&s==="add"&&t`<section class="box" aria-label=${e("Add a provider")}>
          <header>
            <h2>${e("Add a provider")}</h2>
            <a class="button quiet small end" href=${b("providers")}>${e("Done")}</a>
          </header>
          <div class="body"><${D} /></div>
        </section>`}
        <section class="box" aria-label=${e("Providers")}>
          <header><h2>${e("Providers")}</h2></header>
          <table class="list" role="table" aria-label=${e("Providers")}>
            <thead role="rowgroup">
              <tr role="row">
                <th role="columnheader">${e("Provider")}</th>
                <th role="columnheader">${e("Model")}</th>
                <th role="columnheader" class="wide">${e("Key")}</th>
                <th role="columnheader">${e("Last test")}</th>
                <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
              </tr>
            </thead>
            <tbody role="rowgroup">
              ${m.map(p=>t`<${R}
                    key=${p.id}
                    r=${p}
                    write=${$}
                    tested=${a.get(p.id)}
                    test=${o}
                    edit=${i} />`)}
            </tbody>
          </table>
        </section>
      `}
    <//>
    ${d&&t`<${q} row=${d} done=${()=>i(null)} />`}
  <//>`}export{U as default};
