import{a as E}from"./chunk-IY4UA5QU.js";import{a as F}from"./chunk-QK6JMVOZ.js";import{I as a,J as A,T as C,ba as T,c,ca as f,d as y,da as g,h as l,s as N,u as $,z as D}from"./chunk-DX5UZMM6.js";import{e as R,h as e}from"./chunk-7KQRHSI2.js";function H({of:t}){if(!t.ok)return a`<span class="state bad wrap" role="status">
      <span class="dot bad"></span>
      <${C} text=${t.error} max=${300} />
    </span>`;let r=t.tokens_per_second?.toLocaleString(R(),{maximumFractionDigits:0});return a`<span class="flex results" role="status">
    <span class="state good">
      <span class="dot good"></span>
      ${e("answers in {time}",{time:D(t.first_ms??t.latency_ms)})}
    </span>
    ${r&&a`<span class="faint nw">${e("{speed} tokens/s",{speed:r})}</span>`}
    ${t.tools==="yes"&&a`<span class="good nw"><${A} of="check" /> ${e("calls tools")}</span>`}
    ${t.tools==="no"&&a`<span class="warn nw"><${A} of="warning" /> ${e("does not call tools")}</span>`}
    ${t.tools==="failed"&&a`<span class="warn">
      <${A} of="warning" /> ${e("fails with tools:")} <${C}
        text=${t.tool_error}
        max=${200} />
    </span>`}
  </span>`}var j=[{name:"OpenAI",url:"https://api.openai.com/v1"},{name:"OpenAI Responses",url:"https://api.openai.com/v1",plugin:"llm-responses"},{name:"Anthropic",url:"https://api.anthropic.com",plugin:"llm-anthropic"},{name:"Google",url:"https://generativelanguage.googleapis.com",plugin:"llm-gemini"},{name:"Mistral",url:"https://api.mistral.ai/v1"},{name:"OpenRouter",url:"https://openrouter.ai/api/v1"},{name:"DeepSeek",url:"https://api.deepseek.com/v1"},{name:"Groq",url:"https://api.groq.com/openai/v1"},{name:"xAI",url:"https://api.x.ai/v1"},{name:"Together",url:"https://api.together.xyz/v1"},{name:"Fireworks",url:"https://api.fireworks.ai/inference/v1"},{name:"Ollama",url:"http://127.0.0.1:11434",local:!0,plugin:"llm-ollama"},{name:"LM Studio",url:"http://127.0.0.1:1234/v1",local:!0},{name:"vLLM",url:"http://127.0.0.1:8000/v1",local:!0},{name:"llama.cpp",url:"http://127.0.0.1:8080/v1",local:!0}];var z="llm-openai",V={name:"",url:""};function ce({activate:t,done:r}){let h=N("/api/local-models",[]).data??[],[p,v]=l(null),[d,u]=l(""),[b,w]=l(""),[o,m]=l(""),[i,k]=l(""),[M,I]=l(null),[L,_]=l(null),x=s=>h.find(n=>n.name===s.name),G=s=>{v(s),u(s.url),k(s.name),m(x(s)?.models[0]??""),I(null),_(null)},K=async()=>{_(null);let s={base_url:d.trim(),...b&&{api_key:b},...o.trim()&&{model:o.trim()}},n=M?await c("PATCH",`/api/llm-providers/${y(M.id)}`,{label:i,config:s}):await c("POST","/api/llm-providers",{plugin:p?.plugin??z,label:i||d,config:s});I(n);let O=await c("POST",`/api/llm-providers/${y(n.id)}/test?measure=true&timeout_ms=30000`);_(O),O.ok&&(t&&await c("PATCH","/api/llm-providers/active",{name:n.id}),w(""),r?.(n))},q=s=>s.url?s.local?x(s)?e("Found on this machine"):e("On this machine"):e("Needs a key"):e("Any OpenAI-compatible address"),P=p?x(p)?.models??[]:[],S=(s,n,O,J={})=>a`<${g} label=${s}>
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
      ${[...j,V].map(s=>a`<button
            type="button"
            key=${s.name}
            class="preset"
            aria-pressed=${p===s}
            onClick=${()=>G(s)}>
            <${F} name=${s.name||"…"} />
            <span class="two">
              <b class="strong">${s.name||e("Other")}</b>
              <small class=${x(s)?"good":""}>${q(s)}</small>
            </span>
          </button>`)}
    </div>
    ${p&&a`
      <div class="pair">
        ${S(e("Address"),d,u,{inputmode:"url"})}
        ${!p.local&&S(e("Key"),b,w,{type:"password"})}
        ${P.length?a`<${g} label=${e("Model")}>
              ${s=>a`<select id=${s} onChange=${f(m)}>
                  ${P.map(n=>a`<option value=${n} selected=${n===o}>${$(n)}</option>`)}
                </select>`}
            <//>`:S(e("Model"),o,m)}
        ${S(e("Name"),i,k)}
      </div>
      <p class="faint">
        ${e("The key is kept in yaya’s sealed store of secrets, and is never shown again.")}
      </p>
      <div class="buttons">
        <${T} kind="primary" disabled=${!/^https?:\/\/./.test(d.trim())} run=${K}>
          ${e("Save and test")}
        <//>
        ${L&&a`<${H} of=${L} />`}
      </div>
    `}
  `}var W=t=>t.label&&t.label!==`${t.plugin} (default)`?t.label:t.id,B=t=>t===void 0?"":typeof t=="string"?t:JSON.stringify(t),Q=new Map([["base_url",e("Address")],["api_key",e("Key")],["model",e("Model")],["thinking_effort",e("Thinking effort")],["context_window",e("Context window in tokens")],["script",e("Script")]]);function be({row:t,done:r}){let[h,p]=l(t.label),[v,d]=l(new Map),u=t.config_schema,b=[...new Set([...Object.keys(u?.properties??{}),...Object.keys(t.config)])],w=async()=>{let o=Object.create(null);for(let[m,i]of v){let k=u?.properties?.[m]?.type;o[m]=k==="string"||k===void 0&&!/^[\[{"\d-]|^(true|false|null)$/.test(i)?i:JSON.parse(i)}await c("PATCH",`/api/llm-providers/${y(t.id)}`,{...h!==t.label&&{label:h},config:o}),r()};return a`<${E} title=${e("Change {name}",{name:$(W(t))})} onClose=${r}>
    <${g} label=${e("Name")}>
      ${o=>a`<input id=${o} value=${h} onInput=${f(p)} />`}
    <//>
    ${b.map(o=>a`<${g}
          key=${o}
          label=${Q.get(o)??$(o)}
          hint=${$(u?.properties?.[o]?.description??"")}>
          ${m=>a`<input
              id=${m}
              type=${/key|token|secret|password/.test(o)?"password":"text"}
              autocomplete="off"
              spellcheck="false"
              value=${v.get(o)??B(t.config[o])}
              onInput=${f(i=>d(new Map(v).set(o,i)))} />`}
        <//>`)}
    <div class="buttons">
      <button type="button" onClick=${r}>${e("Cancel")}</button>
      <${T} kind="primary" run=${w}>${e("Save")}<//>
    </div>
  <//>`}export{H as a,ce as b,W as c,B as d,be as e};
