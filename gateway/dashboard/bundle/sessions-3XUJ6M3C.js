import{a as Ae,b as Me,c as Ie,d as me,e as Pe,f as Ne,h as Re,j as je,k as Ee,l as De}from"./chunk-6RX6KHIC.js";import"./chunk-ZAOT4YSA.js";import{a as Fe,b as ne,c as Le,d as He}from"./chunk-U3QQM2FN.js";import{d as te,e as oe,f as Oe}from"./chunk-COBE4HLW.js";import{b as W}from"./chunk-IY4UA5QU.js";import{a as Ce}from"./chunk-43UXHYUF.js";import{$ as Be,A as ee,B as qe,I as n,J as f,N as We,T as g,U as re,V as B,W as fe,X as N,Y as V,Z as ge,a as Se,b as Te,ba as A,c as k,ca as U,d as m,da as ae,h as x,i as se,j as H,k as J,l as E,o as X,p as w,q,r as Z,s as C,t as _e,u as T,v as z,z as $e}from"./chunk-DX5UZMM6.js";import{e as ve,h as t,i as j,j as xe}from"./chunk-7KQRHSI2.js";function Ue({id:e,title:o}){let s=e.split("::agent::")[0]??e,a=C(`/v1/sessions/${m(s)}`,["sessions","agents"]),r=C("/v1/sessions?limit=1000",["sessions","agents"]),l=r.data?.sessions.find(h=>h.id===s)?.node,c=r.data?.missing_nodes??[],u=(r.data||r.error)&&(a.data||a.error);return n`<${V} title=${o}>
    ${!u&&n`<p class="muted" role="status">${t("Loading …")}</p>`}
    ${u&&l&&n`<p class="notice" role="status">
      ${j("This session is on the node {node}, which has not shown it. The page tries again.",{node:n`<b><${g} text=${l} max=${63} /></b>`})}
    </p>`}
    ${u&&!l&&n`<p class="problem" role="alert">${t("Session not found.")}</p>`}
    ${u&&!l&&c.length>0&&n`<p>
      ${t("It may be on {nodes}, which cannot be reached from here.",{nodes:ee(c)})}
    </p>`}
    <p>
      <a href=${q("chat")}>${t("All sessions")}</a>
      ${w("agents:read")&&l&&n` · <a href=${q("cluster")}>${t("Cluster")}</a>`}
    </p>
  <//>`}var K=new Map,be=new Set;async function ie(e,o){if(be.has(e))return;be.add(e);let s=K.get(e)??[],a=500;for(let r;r=s.find(l=>!l.refused);){try{await k("POST",`/v1/sessions/${m(e)}/messages`,{id:r.id,role:"user",parts:r.parts,auto_run:!0,delivery:r.delivery}),s.splice(s.indexOf(r),1),a=500}catch(l){l instanceof Se&&l.status!==0&&l.status<500&&l.status!==429?r.refused=l:(r.note="yaya cannot be reached; the message is sent as soon as possible",o(),await new Promise(c=>setTimeout(c,a)),a=Math.min(a*2,8e3))}o()}be.delete(e)}var Ge=()=>"msg_"+crypto.getRandomValues(new Uint8Array(12)).reduce((e,o)=>e+o.toString(16).padStart(2,"0"),"");var Ke=64*1024,ke=e=>"yaya.draft."+e;function it(e){try{return sessionStorage.getItem(ke(e))??""}catch{return""}}function lt(e,o){try{o&&o.length<=Ke?sessionStorage.setItem(ke(e),o):sessionStorage.removeItem(ke(e))}catch{}}function ye(e,o,s,a){let r=K.get(e)??[];K.set(e,r),r.push({id:Ge(),parts:o,delivery:s,refused:null,note:""}),a(),ie(e,a)}function ze({id:e,title:o,running:s,retry:a,closed:r,note:l,stop:c,draw:u}){let[h,i]=x(it(e)),[$,M]=x([]),[v,O]=x(null),S=E(null),I=E(null);if(H(()=>S.current?.focus(),[]),J(()=>lt(e,h),[h]),J(()=>{let p=S.current;if(!p)return;let _=window.innerHeight/3;p.style.height="auto",p.style.height=`${h.length>Ke?_:Math.min(p.scrollHeight,_)}px`},[h]),r)return n`<p class="empty">${t("The session is closed. Fork it to continue.")}</p>`;let P=p=>{if(!h.trim()&&!$.length)return;let _=$.map(b=>({type:b.mime_type.startsWith("image/")?"image":"file",ref:b.ref,mime_type:b.mime_type,name:b.name}));h.trim()&&_.unshift({type:"text",text:h}),i(""),M([]),ye(e,_,p,u)},R=async p=>{O(null);for(let _ of p??[])try{let b=new FormData;b.append("file",_,_.name);let d=await(await Te("POST",`/v1/sessions/${m(e)}/attachments`,{raw:b})).json();M(y=>[...y,d])}catch(b){O(b)}};return n`<form
    class="composer"
    onSubmit=${p=>{p.preventDefault(),P("queue")}}>
    <${N} error=${v} />
    ${$.length>0&&n`<p class="files">
      ${$.map(p=>n`<span key=${p.ref} class="chip">
            <${f} of="attach" />
            <${g} text=${p.name||p.ref} max=${40} />
            <button
              type="button"
              class="quiet sq small"
              aria-label=${t("Remove the file {name}",{name:T(p.name||p.ref)})}
              onClick=${()=>M($.filter(_=>_!==p))}>
              <${f} of="close" />
            </button>
          </span>`)}
    </p>`}
    <textarea
      ref=${S}
      aria-label=${t("Message")}
      rows="1"
      value=${h}
      maxlength="900000"
      placeholder=${t("Message {title}",{title:T(o).slice(0,60)})}
      onInput=${U(i)}
      onPaste=${p=>{p.clipboardData?.files.length&&(p.preventDefault(),R(p.clipboardData.files))}}
      onKeyDown=${p=>{p.isComposing||(p.key==="Enter"&&!p.shiftKey&&(p.preventDefault(),P(s&&(p.ctrlKey||p.metaKey)?"steer":"queue")),p.key==="Escape"&&s&&(p.preventDefault(),c().catch(O)))}}></textarea>
    <div class="tools">
      <input
        ref=${I}
        type="file"
        multiple
        hidden
        onChange=${p=>{R(p.target.files)}} />
      <button
        type="button"
        class="quiet sq"
        aria-label=${t("Attach files")}
        title=${t("Attach files")}
        onClick=${()=>I.current?.click()}>
        <${f} of="attach" />
      </button>
      ${l}
      <span class="end flex">
        ${a&&!s&&n`<${A} run=${()=>k("POST",`/v1/sessions/${m(e)}/turns/${m(a)}/retry`)}>
          <${f} of="restart" />
          ${t("Run it again")}
        <//>`}
        ${s&&n`<button type="button" class="quiet" onClick=${()=>P("steer")}>
          <${f} of="steer" />
          ${t("Steer")} <kbd aria-hidden="true">Ctrl ↵</kbd>
        </button>`}
        <button class="primary" type="submit" title=${t("Enter sends, Shift+Enter adds a line")}>
          <${f} of=${s?"queue":"send"} />
          ${s?t("Queue"):t("Send")} <kbd aria-hidden="true">↵</kbd>
        </button>
      </span>
    </div>
  </form>`}var le=new Set(["user.message.received","llm.call.response","assistant.message.done","tool.call.request","tool.call.start","tool.call.result","tool.error","turn.started","turn.completed","turn.failed","turn.cancelled","approval.response","approval.cancelled","verify.completed","session.compaction.completed","turn.note","turn.notice","llm.call.retry","llm.call.fallback","x.session.mode"]),ce="kept";le.add(ce);var de=e=>e==="reject"?t("Rejected"):e==="approve_for_session"?t("Approved for this session"):t("Approved"),Q=class{constructor(){this.list=[],this.tools=new Map,this.clients=new Set,this.answer="",this.open=new Set,this.usage=null}unsaid(o){return this.answer.startsWith(o.trim())?"":o}add(o){let s=this.list.at(-1);return o.kind==="tool"&&s?.kind==="tool"&&(s.more=o.after=!0),this.list.push(o),o}cut(){for(let o of this.open)o.cut=!0;this.open.clear()}tool(o="",s){let a=this.tools.get(o);return a||(a=this.add({key:"t"+s,kind:"tool",call:{id:o,name:"",args:void 0}}),this.tools.set(o,a),this.open.add(a)),a}ended(o,s,a){let r=this.tool(o,s);return this.open.delete(r),r.ended=a,r.cut=!1,r}take(o){let s=o.data??{},a=String(o.cursor?.seq??""),r=o.ts,l=c=>this.add({key:a,kind:"note",tone:"",text:c,ts:r});switch(o.type){case"turn.started":this.answer="";break;case"user.message.received":o.client_id&&this.clients.add(o.client_id),this.add({key:a,kind:"user",text:s.text,attachments:s.attachments??[],ts:r});break;case ce:this.add({key:a,kind:"assistant",text:s.text,ts:r,stopped:!0});break;case"llm.call.response":if(s.usage&&(this.usage=s.usage),s.text){let c=s.stop_reason==="interrupted";this.add({key:a,kind:"assistant",text:s.text,ts:r,stopped:c}),this.answer=s.text}break;case"assistant.message.done":s.content&&s.content!==this.answer&&this.add({key:a,kind:"assistant",text:s.content,ts:r}),this.answer="";break;case"tool.call.request":case"tool.call.start":{let c=this.tool(s.id,a);c.call={id:s.id??"",name:s.name,args:s.args},c.ts??=r,o.type==="tool.call.start"&&(c.began=r);break}case"tool.call.result":this.ended(s.id,a,r).result={ok:s.ok,error:s.error,envelope:s.envelope};break;case"tool.error":this.ended(s.id,a,r).result={ok:!1,error:s.brief,kind:s.kind,detail:s.detail};break;case"tool.progress":{let c=this.tools.get(s.id??"");c&&(c.progress=s);break}case"turn.completed":this.cut();break;case"turn.failed":this.cut(),this.add({key:a,kind:"note",tone:"bad",text:t("The turn failed: {error}",{error:s.error??""}),ts:r});break;case"turn.cancelled":this.cut(),this.add({key:a,kind:"note",tone:"busy",text:s.reason?t("The turn was cancelled: {reason}",{reason:s.reason}):t("The turn was cancelled."),ts:r});break;case"approval.response":{let[c]=this.open.size===1?this.open:[];if(c)c.answer={response:s.response??"",feedback:s.feedback??""};else{let u=de(s.response);this.add({key:a,kind:"note",tone:s.response==="reject"?"bad":"good",text:s.feedback?`${u}: ${s.feedback}`:u,ts:r})}break}case"approval.cancelled":this.add({key:a,kind:"note",tone:"busy",text:s.reason==="timeout"?t("Nobody answered in time, so the call was rejected."):t("The question was withdrawn, because the turn was cancelled or yaya stopped."),ts:r});break;case"verify.completed":this.add({key:a,kind:"note",tone:s.exit_code===0?"good":"bad",text:s.exit_code===0?t("Check “{command}”: passed",{command:s.command??""}):t("Check “{command}”: failed ({code})",{command:s.command??"",code:s.exit_code??"?"}),ts:r});break;case"turn.note":s.name==="undo"&&this.add({key:a,kind:"note",tone:"",text:t("The last change of files was undone."),undone:(s.text??"").split(`
`).slice(1),ts:r});break;case"turn.notice":l(s.text);break;case"llm.call.retry":l(t("The model did not answer ({error}). It was asked again after {n} s.",{error:s.error??"",n:Math.round((s.wait_s??0)*10)/10}));break;case"llm.call.fallback":l(t("{from} cannot answer ({error}): {to} answers instead.",{from:[s.failed?.provider,s.failed?.model].filter(Boolean).join("/"),to:[s.next?.provider,s.next?.model].filter(Boolean).join("/"),error:s.error??""}));break;case"x.session.mode":l({plan:t("The agent only reads until you approve its plan."),edits:t("The agent changes files without a question.")}[s.mode??""]??t("The agent may work again, as far as you allow it."));break;case"session.compaction.completed":l(s.how==="shortened"?t("Long results of tools were shortened for the model."):t("The earlier conversation was summarized for the model."));break}}};var ct=new Map(Object.entries({shell:"terminal",verify:"terminal",apply_patch:"edit",edit:"edit",search:"search",read_file:"file",repo_tree:"folder",repo_map:"folder",git_status:"diff",agent:"agent"}));function dt(e,o){let s=e.result;return o?["busy",t("waits for you")]:e.answer?.response==="reject"||s?.kind==="rejected"?["bad",t("denied")]:s?s.ok?["good",t("ok")]:["bad",t("failed")]:e.cut?["off",t("cut off")]:["busy",t("running")]}function ut({i:e}){let o=Re();return n`<span class="nw">${$e(Math.max(0,o-Date.parse(e.began??e.ts??"")))}</span>`}function pt(e){let o=e.indexOf("__");return o>0?[e.slice(0,o),e.slice(o+2)]:["",e]}var ht=e=>typeof e=="object"&&e!==null?e:{};function $t({name:e,args:o}){let s=ht(o);if(e==="shell"&&typeof s.command=="string"){let r=T(s.command,!0);return n`<${Ae} text=${r} label=${t("Command")} />`}let a=me(e,o);return a?n`<${Oe} text=${a} />`:n`<${Me} of=${o??{}} />`}function mt({patch:e}){let o=te(T(e,!0)),s={added:0,removed:0};for(let a of o)s.added+=a.added,s.removed+=a.removed;return n`<span class="nw"><${oe} ...${s} /></span>`}function Ve({item:e,id:o,waits:s}){let[a,r]=x(!1),l=e.call?.name??"",[c,u]=pt(l),h=e.result,i=h?.envelope,[$,M]=dt(e,s),v=e.progress,O=me(l,e.call?.args),S=O?te(T(O,!0).slice(0,64*1024)).map(p=>p.name).join(", "):Ne({...ft,tool_name:l,server:c,params:e.call?.args}),I=e.ended&&e.began?Date.parse(e.ended)-Date.parse(e.began):0,P=["tc","tool",e.after&&"after",e.more&&"more"].filter(Boolean).join(" "),R=!h&&v?v.total?t("{done} of {total}",{done:v.progress??0,total:v.total}):T(v.message).slice(0,60):"";return n`<details
    class=${P}
    onToggle=${p=>r(p.currentTarget.open)}>
    <summary>
      <${f} of=${ct.get(l)??"tool"} />
      <span class="strong nw">
        ${c&&n`<span class="faint"><${g} text=${c} max=${32} /></span> `}
        <${g} text=${Pe({tool_name:u})} max=${48} />
      </span>
      <span class="faint cut mono small">${S}</span>
      <span class="stat">
        ${R&&n`<span class="cut">${R}</span>`}
        ${O&&n`<${mt} patch=${O} />`}
        ${!h&&!s&&!e.cut?n`<${ut} i=${e} />`:I>=100&&n`<span class="nw">${$e(I)}</span>`}
        <span class=${"state "+$}><span class=${"dot "+$}></span>${M}</span>
      </span>
      <${f} of="right" />
    </summary>
    ${a&&n`<div class="in">
      <${$t} name=${l} args=${e.call?.args} />
      ${e.answer&&n`<p class=${e.answer.response==="reject"?"bad":"faint"}>
        ${e.answer.feedback?n`
              ${de(e.answer.response)}
              : <${g} text=${e.answer.feedback} max=${2e3} />
            `:de(e.answer.response)}
      </p>`}
      ${h&&e.answer?.response!=="reject"&&(i?n`<${Le} envelope=${i} />`:n`<${re}
            text=${z(h.error??(h.ok?t("done"):t("failed")))}
            label=${t("Result")} />`)}
      ${(i?.artifacts??[]).map(p=>n`<${He} key=${p.id} id=${o} artifact=${p} />`)}
    </div>`}
  </details>`}var ft={id:"",tool_name:"",params:{},brief:"",call_id:"",session_id:"",deadline:"",digest:"",decisions:[],kind:""};var gt=64*1024;function Qe({item:e,id:o,waits:s}){switch(e.kind){case"user":return n`<article class="msg user" aria-label=${t("You")}>
        <div class="said">
          ${(e.text?.length??0)>gt?n`<${re} text=${z(e.text)} />`:z(e.text)}
        </div>
        ${(e.attachments??[]).map(a=>n`<${A}
              key=${a.ref}
              kind="small"
              run=${()=>ne(`/v1/sessions/${m(o)}/${a.ref.split("/").map(m).join("/")}`,T(a.name||a.ref))}>
              <${f} of="attach" />
              <${g} text=${a.name||a.ref} />
            <//>`)}
        ${e.refused?n`<${N} error=${e.refused} />`:e.pending&&n`<p class="muted" role="status">${e.pending}</p>`}
        ${e.refused&&n`<div class="buttons">
          <button type="button" class="small" onClick=${e.discard}>${t("Discard")}</button>
          <button type="button" class="small" onClick=${e.again}>${t("Send again")}</button>
        </div>`}
        ${e.ts&&n`<footer><${B} at=${e.ts} /></footer>`}
      </article>`;case"assistant":return n`<article class="msg assistant ${e.live?"live":""}" aria-label="yaya">
        <${Fe} text=${e.text} />
        ${e.stopped&&n`<footer>${t("Stopped here")}</footer>`}
      </article>`;case"tool":return n`<${Ve} item=${e} id=${o} waits=${s} />`;default:return n`<p class="note ${e.tone}">${z(e.text)} <${B} at=${e.ts} /></p>`}}function bt(e){let o=e.result?.ok&&Ie(e.call?.name??"",e.call?.args);return o?te(T(o,!0)):[]}function kt(e){let o=[];for(let a of e){let r=bt(a);if(r.length>0&&o.push(r),!a.undone)continue;let l=new Set(a.undone),c=o.findLastIndex(u=>u.every(h=>l.has(h.name)));c>=0&&o.splice(c,1)}let s=new Map;for(let a of o.flat()){let r=s.get(a.name)??{added:0,removed:0};s.set(a.name,{added:r.added+a.added,removed:r.removed+a.removed})}return[...s]}function Ye({id:e,items:o,whole:s,running:a}){let r=kt(o);return r.length===0?null:n`<section>
    <h2>${t("Changed files")}</h2>
    <ul class="mini">
      ${r.slice(0,30).map(([l,c])=>n`<li key=${l}>
              <${f} of="file" />
              <span class="mono small cut grow"><bdi>${l}</bdi></span>
              <small class="nw"><${oe} ...${c} /></small>
            </li>`)}
    </ul>
    ${!s&&n`<p class="faint small">
      ${t("By the patches in the part of the conversation that is loaded.")}
    </p>`}
    ${w("sessions:write")&&!a&&n`<${W}
      kind="small"
      yes=${t("Undo the last change")}
      ask=${t("The files of the last patch, edit or command become as they were before it. Nothing happens if somebody has changed one of them since.")}
      run=${async()=>{let c=(await k("POST",`/v1/sessions/${m(e)}/undo`)).files.length;We(xe(c,"{n} file is as before","{n} files are as before"),"replay")}}>
      <${f} of="replay" />
      ${t("Undo the last change")}
    <//>`}
  </section>`}function Je({items:e}){let s=(e.findLast(r=>r.call?.name==="todo"&&r.result?.ok)?.call?.args??{}).steps;if(!Array.isArray(s)||s.length===0)return null;let a=r=>r==="done"?[t("done"),n`<${f} of="check" />`]:r==="doing"?[t("in progress"),n`<span class="dot busy"></span>`]:[t("to do"),n`<span class="dot off"></span>`];return n`<section>
    <h2>${t("Plan")}</h2>
    <ol class="mini plan">
      ${s.slice(0,50).map((r,l)=>{let[c,u]=a(r?.state);return n`<li key=${l} class=${r?.state==="done"?"faint":""}>
          <span class="mark" role="img" aria-label=${c}>${u}</span>
          <span class="small grow">${T(String(r?.text??""))}</span>
        </li>`})}
    </ol>
  </section>`}function Xe({id:e,state:o,reload:s}){let[a,r]=x(null),l=o.mode,c={work:t("Work"),edits:t("Accept edits"),plan:t("Plan first")},u=h=>{r(null),k("PATCH",`/v1/sessions/${m(e)}`,{mode:h.target.value}).catch(r).finally(s)};return n`
    ${w("sessions:write")?n`<select aria-label=${t("Mode of this session")} onChange=${u}>
          ${Object.entries(c).map(([h,i])=>(h!=="edits"||h===l||w("approvals:answer"))&&n`<option value=${h} selected=${h===l}>${i}</option>`)}
        </select>`:n`<p>${c[l]}</p>`}
    ${l==="plan"&&n`<p class="small muted">${t("The agent only reads until you approve its plan.")}</p>`}
    ${l==="edits"&&n`<p class="small muted">${t("The agent changes files without a question.")}</p>`}
    <${N} error=${a} />
  `}function Ze(e){let o=e.id.includes("/")?"":e.model;return T([e.label||e.id,o].filter(Boolean).join(" · ")).slice(0,100)}function et({id:e,state:o,reload:s}){let a=C("/v1/models",["config","plugins"]).data?.models??[],[r,l]=x(null),c=o.model??"";if(!w("sessions:write"))return n`<${g} text=${o.answering_model?.model||c} max=${100} />`;let u=a.find(i=>i.active),h=i=>{l(null),k("PATCH",`/v1/sessions/${m(e)}`,{model:i.target.value}).catch(l).finally(s)};return n`
    <select aria-label=${t("Model of this session")} onChange=${h}>
      <option value="" selected=${!c}>
        ${u?t("Model in use: {model}",{model:Ze(u)}):t("Model in use")}
      </option>
      ${c&&!a.some(i=>i.id===c)&&n`<option value=${c} selected>${T(c).slice(0,100)}</option>`}
      ${a.map(i=>n`<option key=${i.id} value=${i.id} selected=${i.id===c}>${Ze(i)}</option>`)}
    </select>
    ${!o.answering_model&&n`<p class="bad small">${t("This model cannot answer: choose another one.")}</p>`}
    <${N} error=${r} />
  `}var D=e=>e<1e3?String(e):e<1e6?`${(e/1e3).toFixed(e<1e5?1:0)}k`:`${(e/1e6).toFixed(1)}M`,ue=e=>e>0?new Intl.NumberFormat(ve(),{style:"currency",currency:"USD",maximumFractionDigits:e<.01?4:2}).format(e):"";async function we(e){let o=await k("POST",`/v1/sessions/${m(e)}/fork`);Z("chat",o.id)}var Y=(e,o)=>n`<dt>${e}</dt><dd class="num">${o}</dd>`;function tt({id:e,info:o,open:s,session:a}){let r=o.data,c=C(`/v1/sessions/${m(e)}/turns?limit=1`,["sessions"]).data?.turns?.at(-1),u=r?.usage,h=a?.items.usage,i=r?.answering_model?.context_window??0,$=u&&u.input>0?Math.round(100*u.input_cache_read/u.input):0;return n`<aside class=${s?"rail open":"rail"} aria-label=${t("About this session")}>
    ${r?.restricted&&n`<p class="notice">
      ${t("Nobody has trusted its folder: the agent can only read and search there.")}
    </p>`}
    ${r&&n`<section>
      <h2>${t("Model")}</h2>
      <${et} id=${e} state=${r} reload=${o.reload} />
    </section>`}
    ${r&&n`<section>
      <h2>${t("Mode")}</h2>
      <${Xe} id=${e} state=${r} reload=${o.reload} />
    </section>`}
    ${h&&n`<section>
      <h2>${t("Context")}</h2>
      <p>
        ${i>0?j("{n} of {window} tokens in the last request",{n:n`<b>${D(h.input)}</b>`,window:D(i)}):j("{n} tokens in the last request",{n:n`<b>${D(h.input)}</b>`})}
      </p>
    </section>`}
    ${u&&n`<section>
      <h2>${u.cost_usd>0?t("Cost"):t("Tokens")}</h2>
      <dl class="kv">
        ${u.cost_usd>0&&Y(t("This session"),ue(u.cost_usd))}
        ${Y(t("Read"),D(u.input))} ${Y(t("Written"),D(u.output))}
        ${c?.usage&&Y(t("Last turn"),[D(c.usage.total),ue(c.cost_usd??0)].filter(Boolean).join(" · "))}
        ${$>0&&Y(t("Read from the cache"),`${$} %`)}
        ${Y(t("Calls of the model"),u.steps)}
      </dl>
    </section>`}
    ${a&&n`<${Je} items=${a.items.list} />`}
    ${a&&n`<${Ye}
      id=${e}
      items=${a.items.list}
      whole=${a.first<=1}
      running=${a.running} />`}
    <section>
      <h2>${t("Runs in")}</h2>
      <dl class="kv">
        <dt>${t("Folder")}</dt>
        <dd class="mono small"><${g} text=${r?.workspace_path} max=${300} /></dd>
        ${c?.model&&n`
          <dt>${t("Model of the last turn")}</dt>
          <dd><${g} text=${c.model} max=${100} /></dd>
        `}
        <dt>${t("Strategy")}</dt>
        <dd><${g} text=${r?.strategy||t("default")} max=${60} /></dd>
        <dt>${t("Started")}</dt>
        <dd><${B} at=${r?.created_at} /></dd>
        ${r?.parent_id&&n`
          <dt>${t("Forked from")}</dt>
          <dd>
            <a href=${q("chat",r.parent_id)}><${g} text=${r.parent_id} max=${40} /></a>
          </dd>
        `}
        <dt>${t("Id")}</dt>
        <dd class="mono small"><${g} text=${e} max=${200} /></dd>
      </dl>
    </section>
    <section class="buttons">
      <${A} kind="small" run=${()=>ne(`/v1/sessions/${m(e)}/export`,`${e}.jsonl`)}>
        <${f} of="download" />
        ${t("Export")}
      <//>
      ${w("sessions:write")&&n`
        <span class="phone">
          <${A} kind="small" run=${()=>we(e)}><${f} of="fork" />${t("Fork")}<//>
        </span>
        <${W}
          kind="small"
          yes=${t("Start over")}
          ask=${t("The session starts over with an empty conversation. The old one moves to the archive.")}
          run=${()=>k("POST",`/v1/sessions/${m(e)}/reset`)}>
          ${t("Start over")}
        <//>
        <${W}
          kind="small"
          yes=${t("Close the session")}
          ask=${t("The session accepts no more messages. You can still fork it.")}
          run=${()=>k("POST",`/v1/sessions/${m(e)}/close`)}>
          ${t("Close")}
        <//>
        <${W}
          kind="small"
          yes=${t("Archive")}
          ask=${t("The session moves to the archive: it is no longer listed, but its tape is kept.")}
          run=${async()=>{await k("POST",`/v1/sessions/${m(e)}/archive`),Z("chat")}}>
          ${t("Archive")}
        <//>
      `}
    </section>
  </aside>`}var st=200,yt=500,wt=5e3,vt=3e3,pe=class{constructor(o,s){this.id=o,this.onChange=s,this.events=[],this.items=new Q,this.first=0,this.cursor=null,this.running=!1,this.queue=[],this.text="",this.stream="",this.problem="",this.absent=!1,this.again=void 0,this.ready=!1,this.busy=!1,this.frame=0,this.channel=X.live?.join("agent:"+o,{cursor:()=>this.cursor?{since:this.cursor.seq,epoch:this.cursor.epoch}:null,joined:a=>this.joined(a),event:(a,r)=>this.event(a,r),refused:a=>{this.absent=a==="unmatched topic",this.problem=this.absent?"":a,clearTimeout(this.again),this.again=setTimeout(()=>this.channel?.join(),wt),this.changed()}})}changed(){if(this.frame)return;let o=()=>{this.frame=0,this.onChange()};this.frame=document.hidden?window.setTimeout(o,100):requestAnimationFrame(o)}close(){clearTimeout(this.again),this.channel?.leave(),cancelAnimationFrame(this.frame),this.onChange=()=>{}}joined(o){this.problem="",this.absent=!1,this.running=!!o.snapshot.turn_id,this.queue=o.snapshot.queue??[],this.text=this.stream="";let s=this.cursor?o.cursor.seq-this.cursor.seq:0;(!this.cursor||o.resync||o.cursor.epoch!==this.cursor.epoch||s>vt)&&(this.events=[],this.items=new Q,this.cursor=o.cursor,this.first=o.cursor.seq+1,this.ready=!1),this.ready||this.older(st),this.changed()}async older(o=yt){if(this.busy||this.first<=1||!this.channel){this.ready||=this.first<=1;return}this.busy=!0;let s=this.cursor?.epoch;try{let a=await this.channel.push("history",{before:this.first,limit:o});if(this.cursor?.epoch===s){this.first=a.first,this.events=a.events.filter(r=>le.has(r.type)).concat(this.events),this.items=new Q;for(let r of this.events)this.items.take(r);this.ready=!0}}catch(a){this.problem=qe(a)}this.busy=!1,this.cursor&&this.cursor.epoch!==s&&this.older(st),this.changed()}event(o,s){switch(o){case"stream_start":this.stream=s.request_id,this.text="";break;case"stream_chunk":s.request_id===this.stream&&(this.text+=s.chunk);break;case"stream_end":case"stream_error":break;case"resync":this.cursor=null,this.joined({cursor:{epoch:s.current.epoch,seq:s.current.as_of_seq},snapshot:s.current});return;default:{if(s.cursor){if(this.cursor&&s.cursor.epoch===this.cursor.epoch&&s.cursor.seq<=this.cursor.seq)return;this.cursor=s.cursor}o==="queue_changed"&&(this.queue=s.data.queue),(o==="x.session.model"||o==="x.session.mode")&&_e(["sessions"]),o==="turn.started"&&(this.running=!0),(o==="turn.completed"||o==="turn.failed"||o==="turn.cancelled")&&(this.running=!1),(o==="turn.cancelled"||o==="turn.failed")&&this.keep(s),(o==="llm.call.response"||o==="assistant.message.done"||o.startsWith("turn."))&&(this.text=this.stream=""),s.cursor&&le.has(o)&&this.events.push(s),this.items.take(s)}}this.changed()}keep(o){let s=this.items.unsaid(this.text);if(!s.trim()||!o.cursor)return;let a={...o.cursor,seq:o.cursor.seq-.5},r={type:ce,ts:o.ts,cursor:a,data:{text:s}};this.events.push(r),this.items.take(r)}};var xt=64,ot=800,St=48;function nt({items:e,row:o,label:s,onTop:a,foot:r,empty:l,sent:c}){let u=E(null),h=E(new Map),i=E({top:0,height:600,full:0,end:!0,anchor:"",offset:0,ours:-1,sent:c}),[,$]=se(d=>d+1,0),M=E(null);c&&c!==i.current.sent&&(i.current.sent=c,i.current.end=!0);let v=new Array(e.length+1);v[0]=0;for(let d=0;d<e.length;d++)v[d+1]=v[d]+(h.current.get(e[d].key)??xt);let O=v[e.length],S=i.current.top;if(i.current.end)S=Math.max(0,O-i.current.height);else if(i.current.anchor){let d=e.findIndex(y=>y.key===i.current.anchor);d>=0&&(S=v[d]+i.current.offset)}let I=d=>{let y=0,L=e.length;for(;y<L;){let G=y+L>>1;v[G+1]<d?y=G+1:L=G}return y},P=I(S-ot),R=Math.min(e.length,I(S+i.current.height+ot)+1),p=d=>{let y=I(d.scrollTop);i.current.anchor=e[y]?.key??"",i.current.offset=d.scrollTop-(v[y]??0)},_=()=>{let d=u.current;if(!d)return;let y=d.clientHeight!==i.current.height||d.scrollHeight!==i.current.full,L=d.scrollTop<i.current.top;i.current.top=d.scrollTop,i.current.height=d.clientHeight,i.current.full=d.scrollHeight,!(y&&i.current.end)&&(Math.abs(d.scrollTop-i.current.ours)<2||(i.current.end=!L&&d.scrollHeight-d.clientHeight-d.scrollTop<St,p(d)))},b=d=>{let y=u.current;!y||d.deltaY>=0||y.scrollTop===0||(i.current.end=!1,p(y))},F=()=>{let d=!1;for(let y of u.current?.querySelectorAll("[data-key]")??[]){let L=y.dataset.key??"",G=y.getBoundingClientRect().height;G>0&&Math.abs((h.current.get(L)??0)-G)>.5&&(h.current.set(L,G),d=!0)}return d};return J(()=>{let d=u.current;if(!d)return;let y=F();if(i.current.end)d.scrollTop=d.scrollHeight;else if(Math.abs(d.scrollTop-S)>1&&i.current.anchor)d.scrollTop=S;else return void(y&&$(0));i.current.ours=i.current.top=d.scrollTop,i.current.height=d.clientHeight,i.current.full=d.scrollHeight,y&&$(0)}),H(()=>{let d=u.current;if(d)return i.current.height=d.clientHeight,M.current=new ResizeObserver(()=>$(0)),M.current.observe(d),$(0),()=>M.current?.disconnect()},[]),H(()=>{P===0&&a&&e.length&&a()}),n`<div
    class="virtual"
    ref=${u}
    tabindex="0"
    role="log"
    aria-label=${s}
    aria-live="off"
    onWheel=${b}
    onScroll=${()=>{_(),$(0)}}>
    ${e.length===0&&l}
    <div style=${{height:v[P]+"px"}}></div>
    ${e.slice(P,R).map(d=>n`<div key=${d.key} data-key=${d.key} class="row">${o(d)}</div>`)}
    <div style=${{height:O-v[R]+"px"}}></div>
    <div class="foot">${r}</div>
  </div>`}Ce("talk");function Tt(e,o,s){let a=K.get(e)??[];return a.filter(r=>!o.items.clients.has(r.id)).map(r=>({key:r.id,kind:"user",text:r.parts.map(l=>l.text??"").join(`
`),pending:r.note||t("Sending …"),refused:r.refused,again:()=>{r.refused=null,s(),ie(e,s)},discard:()=>{a.splice(a.indexOf(r),1),s()}}))}function _t({id:e,s:o,draw:s}){let a=r=>k("PUT",`/v1/sessions/${m(e)}/queue`,{message_ids:o.queue.map(l=>l.id).filter(l=>l!==r.id)});return n`<section class="queue" aria-label=${t("Queue")}>
    ${o.queue.map(r=>n`<div key=${r.id} class="flex">
          <${f} of="queue" />
          <span class="faint">${t("Queued")}</span>
          <span class="cut grow"><${g} text=${r.text} max=${160} /></span>
          ${w("sessions:write")&&n`
            ${o.running&&n`<${A}
              kind="quiet small"
              run=${async()=>{await a(r),ye(e,[{type:"text",text:r.text}],"steer",s)}}>
              <${f} of="steer" />
              ${t("Steer now")}
            <//>`}
            <${A}
              kind="quiet sq small"
              label=${t("Remove from the queue")}
              run=${()=>a(r)}>
              <${f} of="close" />
            <//>
          `}
        </div>`)}
  </section>`}function rt({id:e}){let[,o]=se(b=>b+1,0),s=E(null),a=e.includes("::agent::")?e.slice(0,e.lastIndexOf("::agent::")):"",r=C(a?null:`/v1/sessions/${m(e)}`,["sessions"]),l=C("/api/approvals",["approvals"]),[c,u]=x(!1),h=X.link.use();H(()=>{let b=s.current=new pe(e,()=>o(0));return o(0),()=>b.close()},[e]);let i=s.current,$=(l.data??[]).filter(b=>b.session_id===e||b.session_id.startsWith(e+"::agent::")),M=new Set($.map(b=>b.call_id)),[v,O]=$.length?["busy",t("Asks you")]:i?.running?["busy",t("Working")]:["off",t("Idle")],S=r.data?.title||e;if(H(()=>X.title.set(S),[S]),i?.absent)return n`<${Ue} id=${e} title=${S} />`;let I=i?[...i.items.list,...Tt(e,i,()=>o(0))]:[],P=i?.items.unsaid(i.text);P&&I.push({key:"live"+i?.stream,kind:"assistant",text:P,live:!0});let R=()=>k("POST",`/v1/sessions/${m(e)}/cancel`),p=!a&&w("sessions:write"),_=i?.items.usage?.input;return n`
    <header class="bar">
      <span class="crumb"><a href=${q("chat")}>${t("Sessions")}</a> /</span>
      <h1 class="cut"><${g} text=${S} max=${80} /></h1>
      <div class="actions">
        <span class=${"state "+v} role="status">
          <span class=${"dot "+v}></span>${O}
        </span>
        ${a&&n`<a href=${q("chat",a)}>
          ${j("works for {session}",{session:n`<${g} text=${a} max=${40} />`})}
        </a>`}
        ${p&&n`<span class="nophone">
          <${A} kind="quiet" run=${()=>we(e)}><${f} of="fork" />${t("Fork")}<//>
        </span>`}
        ${p&&i?.running&&n`<${A} run=${R}>
          <${f} of="stop" />
          ${t("Stop")} <kbd aria-hidden="true">Esc</kbd>
        <//>`}
        ${!a&&n`<button
          type="button"
          class="quiet toside"
          aria-expanded=${c}
          onClick=${()=>u(!c)}>
          ${t("Details")}
        </button>`}
      </div>
    </header>
    <div class=${a?"talk":"talk with"}>
      <div class="mid">
        <${N} error=${i?.problem||r.error} />
        <${nt}
          label=${t("Conversation")}
          items=${I}
          sent=${K.get(e)?.at(-1)?.id}
          onTop=${i?.ready?()=>{i.older()}:void 0}
          row=${b=>n`<${Qe} item=${b} id=${e} waits=${M.has(b.call?.id??"")} />`}
          empty=${n`<p class="empty">
            ${i?.ready?t("There are no messages yet."):h.state==="open"?t("Loading …"):t("Connecting …")}
          </p>`} />
        <div class="dock">
          ${$.length>0&&n`<div class="asks">
            ${Ee($).map(([b,F])=>n`<${De}
                  key=${b}
                  asks=${F}
                  only=${$.length===F.length}
                  where=${F[0].session_id!==e&&n`<a href=${q("chat",F[0].session_id)}>
                    <${g} text=${F[0].session_id} max=${60} />
                  </a>`}
                  among=${je($)} />`)}
          </div>`}
          ${i&&i.queue.length>0&&n`<${_t} id=${e} s=${i} draw=${()=>o(0)} />`}
          ${p&&n`<${ze}
            id=${e}
            title=${S}
            running=${!!i?.running}
            retry=${["failed","canceled"].includes(r.data?.status??"")&&r.data?.last_turn_id}
            closed=${r.data?.status==="completed"}
            note=${_?n`<span
                  class="faint small nw"
                  title=${t("Tokens in the last request to the model")}>
                  ${t("{n} tokens",{n:D(_)})}
                </span>`:null}
            stop=${R}
            draw=${()=>o(0)} />`}
        </div>
      </div>
      ${!a&&n`<${tt} id=${e} info=${r} open=${c} session=${i} />`}
    </div>
  `}function at(){let e=C(w("config:read")?"/api/setup":null,[]),[o,s]=x(""),[a,r]=x(""),[l,c]=x(""),[u,h]=x(null),i=async()=>{h(null);let $=o||(e.data??(w("config:read")?await k("GET","/api/setup"):void 0))?.workspace||"",M=await k("POST","/v1/sessions",{workspace_path:$,...a&&{title:a},...l&&{system_prompt:l},auto_run:!0});Z("chat",M.session_id)};return n`<${V} title=${t("New session")}>
    <form
      class="narrow"
      onSubmit=${$=>{$.preventDefault(),i().catch(h)}}>
      <${ae}
        label=${t("Folder")}
        hint=${t("A folder on the machine that yaya runs on. The agent's tools cannot reach anything outside it.")}>
        ${$=>n`<input
            id=${$}
            class="mono"
            value=${o}
            placeholder=${e.data?.workspace??""}
            spellcheck="false"
            onInput=${U(s)} />`}
      <//>
      <${ae} label=${t("Title")} hint=${t("If empty, the first message is the title.")}>
        ${$=>n`<input id=${$} value=${a} onInput=${U(r)} />`}
      <//>
      <details>
        <summary>${t("Instructions")}</summary>
        <${ae} label=${t("System prompt for the model")}>
          ${$=>n`<textarea
              id=${$}
              rows="4"
              value=${l}
              onInput=${U(c)}></textarea>`}
        <//>
      </details>
      <${N} error=${u} />
      <div class="buttons"><button class="primary" type="submit">${t("Start")}</button></div>
    </form>
  <//>`}var he="::agent::";function qt({rest:[e]}){return e==="new"?n`<${at} />`:e?n`<${rt} key=${e} id=${e} />`:n`<${Nt} />`}var Ct=e=>e.state==="requires_action"?"waiting_approval":e.state==="running"||e.status==="active"?e.state:e.status;function At(e,o,s){let a=r=>r?.toLowerCase().includes(s);return e.filter(r=>!s||a(r.title)||a(r.workspace_path)||a(r.id)).flatMap(r=>[{s:r},...o.filter(l=>l.id.startsWith(r.id+he)).map(l=>({agent:l,depth:l.id.split(he).length-1}))])}var Mt=({s:e})=>n`<${W}
    kind="quiet small"
    label=${t("Archive {title}",{title:T(e.title||e.id)})}
    yes=${t("Archive")}
    ask=${j("“{title}” moves to the archive: it is no longer listed, but its tape is kept.",{title:n`<${g} text=${e.title||e.id} />`})}
    run=${()=>k("POST",`/v1/sessions/${m(e.id)}/archive`)}>
    ${t("Archive")}
  <//>`,Ot=({s:e})=>n`<tr key=${e.id} role="row">
    <td role="cell" class="p1">
      <a class="strong" href=${q("chat",e.id)}><${g} text=${e.title||e.id} max=${80} /></a>
      ${e.parent_id&&n` <span class="badge"><${f} of="fork" />${t("fork")}</span>`}
      ${e.node&&n` <span class="badge">
          ${j("on {node}",{node:n`<${g} text=${e.node} max=${63} />`})}
        </span>
      `}
    </td>
    <td role="cell" class="p2"><${fe} state=${Ct(e)} /></td>
    <td role="cell" class="p3 mono faint"><${g} text=${e.workspace_path} max=${60} /></td>
    <td role="cell" class="num">${e.usage.total?D(e.usage.total):""}</td>
    <td role="cell" class="num">${ue(e.usage.cost_usd)}</td>
    <td role="cell" class="p4 faint"><${B} at=${e.updated_at} /></td>
    <td role="cell" class="end">${w("sessions:write")&&n`<${Mt} s=${e} />`}</td>
  </tr>`,It=({agent:e,depth:o})=>n`<tr key=${e.id} role="row">
    <td role="cell" class=${"p1 inner d"+Math.min(o,3)}>
      <${f} of="agent" />
      ${" "}
      <a href=${q("chat",e.id)}>
        <${g} text=${e.id.slice(e.id.lastIndexOf(he)+he.length)} max=${60} />
      </a>
      ${" "}
      <span class="faint small">${t("sub-agent")}</span>
    </td>
    <td role="cell" class="p2"><${fe} state=${e.status} /></td>
    <td role="cell" class="p3"></td>
    <td role="cell"></td>
    <td role="cell"></td>
    <td role="cell" class="p4 faint"><${B} at=${e.ts} /></td>
    <td role="cell"></td>
  </tr>`,Pt=({rows:e})=>n`<div class="box">
    <table class="sessions" role="table" aria-label=${t("Sessions")}>
      <thead role="rowgroup">
        <tr role="row">
          <th role="columnheader">${t("Session")}</th>
          <th role="columnheader">${t("State")}</th>
          <th role="columnheader">${t("Folder")}</th>
          <th role="columnheader" class="num">${t("Tokens")}</th>
          <th role="columnheader" class="num">${t("Cost")}</th>
          <th role="columnheader">${t("Changed")}</th>
          <th role="columnheader"><span class="sr">${t("Actions")}</span></th>
        </tr>
      </thead>
      <tbody role="rowgroup">${e.map(o=>"s"in o?Ot(o):It(o))}</tbody>
    </table>
  </div>`;function Nt(){let[e,o]=x([]),[s,a]=x(""),r=C("/v1/sessions?limit=50",["sessions","agents"]),l=C(w("agents:read")?"/api/cluster":null,["agents"]),c=[...r.data?.sessions??[],...e.flatMap($=>$.sessions)],u=new Set([r.data,...e].flatMap($=>$?.missing_nodes??[])),h=At(c,l.data?.agents??[],s.trim().toLowerCase()),i=e.length?e.at(-1)?.next:r.data?.next;return n`<${V}
    title=${t("Sessions")}
    actions=${w("sessions:write")&&n`<a class="button primary" href=${q("chat","new")}>
      <${f} of="plus" />
      ${t("New session")}
    </a>`}>
    <${Be} of=${r}>
      ${()=>n`
        ${u.size>0&&n`<p class="notice" role="status">
          ${u.size===1?t("Sessions are missing: {node} does not answer.",{node:ee([...u])}):t("Sessions are missing: {nodes} do not answer.",{nodes:ee([...u])})}
          ${w("agents:read")&&n` <a href=${q("cluster")}>${t("Cluster")}</a>`}
        </p>`}
        ${c.length>0&&n`<div class="filters">
          <input
            type="search"
            class="narrow"
            aria-label=${t("Filter the sessions")}
            placeholder=${t("Filter the sessions")}
            value=${s}
            maxlength="100"
            onInput=${U(a)} />
        </div>`}
        ${c.length===0?n`<${ge} icon="session">
              ${j("There are no sessions yet. {start}.",{start:n`<a href=${q("chat","new")}>${t("Start one")}</a>`})}
            <//>`:h.length===0?n`<${ge} icon="search">${t("No sessions match.")}<//>`:n`<${Pt} rows=${h} />`}
        ${i&&n`<${A} run=${async()=>{let $=await k("GET",`/v1/sessions?limit=50&cursor=${encodeURIComponent(i)}`);o([...e,$])}}>
          ${t("More")}
        <//>`}
      `}
    <//>
  <//>`}export{qt as default};
