import{a as E}from"./chunk-ELXCHNJK.js";import{a as F}from"./chunk-GZVG4VLF.js";import{I as a,J as _,T as C,ba as A,c,ca as f,d as k,da as g,h as l,s as N,u as $,z as D}from"./chunk-SIIZ3K2M.js";import{e as L,h as e}from"./chunk-7KQRHSI2.js";function H({of:t}){if(!t.ok)return a`<span class="state bad wrap" role="status">
      <span class="dot bad"></span>
      <${C} text=${t.error} max=${300} />
    </span>`;let r=t.tokens_per_second?.toLocaleString(L(),{maximumFractionDigits:0});return a`<span class="flex results" role="status">
    <span class="state good">
      <span class="dot good"></span>
      ${e("answers in {time}",{time:D(t.first_ms??t.latency_ms)})}
    </span>
    ${r&&a`<span class="faint nw">${e("{speed} tokens/s",{speed:r})}</span>`}
    ${t.tools==="yes"&&a`<span class="good nw"><${_} of="check" /> ${e("calls tools")}</span>`}
    ${t.tools==="no"&&a`<span class="warn nw"><${_} of="warning" /> ${e("does not call tools")}</span>`}
    ${t.tools==="failed"&&a`<span class="warn">
      <${_} of="warning" /> ${e("fails with tools:")} <${C}
        text=${t.tool_error}
        max=${200} />
    </span>`}
  </span>`}var j=[{name:"OpenAI",url:"https://api.openai.com/v1"},{name:"OpenAI Responses",url:"https://api.openai.com/v1",plugin:"llm-responses"},{name:"Anthropic",url:"https://api.anthropic.com",plugin:"llm-anthropic"},{name:"Google",url:"https://generativelanguage.googleapis.com",plugin:"llm-gemini"},{name:"Mistral",url:"https://api.mistral.ai/v1"},{name:"OpenRouter",url:"https://openrouter.ai/api/v1"},{name:"DeepSeek",url:"https://api.deepseek.com/v1"},{name:"Groq",url:"https://api.groq.com/openai/v1"},{name:"Ollama",url:"http://127.0.0.1:11434",local:!0,plugin:"llm-ollama"},{name:"LM Studio",url:"http://127.0.0.1:1234/v1",local:!0}];var V="llm-openai",W={name:"",url:""};function ce({activate:t,done:r}){let h=N("/api/local-models",[]).data??[],[p,b]=l(null),[d,u]=l(""),[v,w]=l(""),[o,m]=l(""),[i,y]=l(""),[M,P]=l(null),[R,T]=l(null),S=s=>h.find(n=>n.name===s.name),G=s=>{b(s),u(s.url),y(s.name),m(S(s)?.models[0]??""),P(null),T(null)},K=async()=>{T(null);let s={base_url:d.trim(),...v&&{api_key:v},...o.trim()&&{model:o.trim()}},n=M?await c("PATCH",`/api/llm-providers/${k(M.id)}`,{label:i,config:s}):await c("POST","/api/llm-providers",{plugin:p?.plugin??V,label:i||d,config:s});P(n);let O=await c("POST",`/api/llm-providers/${k(n.id)}/test?measure=true&timeout_ms=30000`);T(O),O.ok&&(t&&await c("PATCH","/api/llm-providers/active",{name:n.id}),w(""),r?.(n))},q=s=>s.url?s.local?S(s)?e("Found on this machine"):e("On this machine"):e("Needs a key"):e("Any OpenAI-compatible address"),I=p?S(p)?.models??[]:[],x=(s,n,O,J={})=>a`<${g} label=${s}>
      ${U=>a`<input
          id=${U}
          value=${n}
          autocomplete="off"
          spellcheck="false"
          maxlength="1024"
          ...${J}
          onInput=${f(O)} />`}
    <//>`;return a`
    <div class="presets" role="group" aria-label=${e("Services")}>
      ${[...j,W].map(s=>a`<button
            type="button"
            key=${s.name}
            class="preset"
            aria-pressed=${p===s}
            onClick=${()=>G(s)}>
            <${F} name=${s.name||"…"} />
            <span class="two">
              <b class="strong">${s.name||e("Other")}</b>
              <small class=${S(s)?"good":""}>${q(s)}</small>
            </span>
          </button>`)}
    </div>
    ${p&&a`
      <div class="pair">
        ${x(e("Address"),d,u,{inputmode:"url"})}
        ${!p.local&&x(e("Key"),v,w,{type:"password"})}
        ${I.length?a`<${g} label=${e("Model")}>
              ${s=>a`<select id=${s} onChange=${f(m)}>
                  ${I.map(n=>a`<option value=${n} selected=${n===o}>${$(n)}</option>`)}
                </select>`}
            <//>`:x(e("Model"),o,m)}
        ${x(e("Name"),i,y)}
      </div>
      <p class="faint">
        ${e("The key is kept in yaya’s sealed store of secrets, and is never shown again.")}
      </p>
      <div class="buttons">
        <${A} kind="primary" disabled=${!/^https?:\/\/./.test(d.trim())} run=${K}>
          ${e("Save and test")}
        <//>
        ${R&&a`<${H} of=${R} />`}
      </div>
    `}
  `}var z=t=>t.label&&t.label!==`${t.plugin} (default)`?t.label:t.id,B=t=>t===void 0?"":typeof t=="string"?t:JSON.stringify(t),Q=new Map([["base_url",e("Address")],["api_key",e("Key")],["model",e("Model")],["thinking_effort",e("Thinking effort")],["context_window",e("Context window in tokens")],["script",e("Script")]]);function ve({row:t,done:r}){let[h,p]=l(t.label),[b,d]=l(new Map),u=t.config_schema,v=[...new Set([...Object.keys(u?.properties??{}),...Object.keys(t.config)])],w=async()=>{let o=Object.create(null);for(let[m,i]of b){let y=u?.properties?.[m]?.type;o[m]=y==="string"||y===void 0&&!/^[\[{"\d-]|^(true|false|null)$/.test(i)?i:JSON.parse(i)}await c("PATCH",`/api/llm-providers/${k(t.id)}`,{...h!==t.label&&{label:h},config:o}),r()};return a`<${E} title=${e("Change {name}",{name:$(z(t))})} onClose=${r}>
    <${g} label=${e("Name")}>
      ${o=>a`<input id=${o} value=${h} onInput=${f(p)} />`}
    <//>
    ${v.map(o=>a`<${g}
          key=${o}
          label=${Q.get(o)??$(o)}
          hint=${$(u?.properties?.[o]?.description??"")}>
          ${m=>a`<input
              id=${m}
              type=${/key|token|secret|password/.test(o)?"password":"text"}
              autocomplete="off"
              spellcheck="false"
              value=${b.get(o)??B(t.config[o])}
              onInput=${f(i=>d(new Map(b).set(o,i)))} />`}
        <//>`)}
    <div class="buttons">
      <button type="button" onClick=${r}>${e("Cancel")}</button>
      <${A} kind="primary" run=${w}>${e("Save")}<//>
    </div>
  <//>`}export{H as a,ce as b,z as c,B as d,ve as e};
