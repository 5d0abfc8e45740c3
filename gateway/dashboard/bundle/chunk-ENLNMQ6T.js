import{a as g}from"./chunk-ZAOT4YSA.js";import{a as m}from"./chunk-IY4UA5QU.js";import{A as C,I as t,V as S,ba as u,c as k,ca as y,da as w,h as d,p as v,u as h}from"./chunk-DX5UZMM6.js";import{h as e,i as p}from"./chunk-7KQRHSI2.js";var x=[["sessions:read",e("watch sessions")],["sessions:write",e("send messages")],["approvals:answer",e("answer approvals")],["agents:read",e("see agents and kernels")],["agents:kill",e("end agents")],["memory:read",e("read the memory")],["skills:invoke",e("invoke skills")],["tools:call",e("call tools")],["kernel:attach",e("attach as a kernel")],["devices:read",e("see devices")],["devices:approve",e("approve devices")],["devices:manage",e("manage and revoke devices")],["config:read",e("see the configuration")],["config:write",e("change the configuration, start servers")],["audit:read",e("read the audit log")],["metrics:read",e("see metrics")]],L=[{scope:"sessions:read",title:e("Watch")},{scope:"sessions:write",title:e("Chat")},{scope:"approvals:answer",title:e("Approve")},{scope:"tools:call",title:e("Call tools")},{scope:"config:write",title:e("Change settings")}],q=s=>C(x.filter(([i])=>s.includes(i)).map(([,i])=>i))||e("nothing"),A=["devices:approve","devices:manage","kernel:attach","skills:invoke"],D=["agents:read","memory:read","sessions:read","sessions:write"];function b({value:s,set:i,token:a}){let c=o=>{let n=new Set(s);n.delete(o)||n.add(o),i(n)};return t`<fieldset class="scopes">
    <legend>${e("What it may do")}</legend>
    ${!a&&!s.has("approvals:answer")&&t`<p class="muted">
      ${p("It cannot answer approvals. If it is your own device, and stays with you: {allow}",{allow:t`<button
          type="button"
          class="link"
          disabled=${!v("approvals:answer")}
          onClick=${()=>c("approvals:answer")}>
          ${e("allow it to answer")}
        </button>`})}
    </p>`}
    ${x.filter(([o])=>!a||!A.includes(o)).map(([o,n])=>t`<label>
          <input
            type="checkbox"
            checked=${s.has(o)}
            disabled=${!v(o)}
            onChange=${()=>c(o)} /> ${n} <code>${o}</code>
        </label>`)}
  </fieldset>`}function M({title:s,yes:i,start:a,run:c,done:o,children:n}){let[l,$]=d(new Set(a));return t`<${m} title=${s} onClose=${o}>
    ${n}
    <${b} value=${l} set=${$} />
    <div class="buttons">
      <button type="button" onClick=${o}>${e("Cancel")}</button>
      <${u}
        arm
        kind="primary"
        run=${async()=>{await c([...l]),o()}}>
        ${i}
      <//>
    </div>
  <//>`}function I({rows:s,label:i}){let a=s.length,c=s.flatMap((o,n)=>[...o].map((l,$)=>l==="1"?`M${$} ${n}h1v1h-1z`:"")).join("");return t`<svg class="qr" role="img" aria-label=${i} viewBox=${`0 0 ${a} ${a}`}>
    <rect width=${a} height=${a} fill="#fff" />
    <path d=${c} fill="#000" />
  </svg>`}function X({done:s,url:i=""}){let[a,c]=d(i),[o,n]=d(""),[l,$]=d(new Set(D)),[r,R]=d(null);return r?t`<${m} title=${e("Enroll the device")} onClose=${s}>
      ${r.qr&&t`<${I} rows=${r.qr} label=${e("QR code of the page’s address with the code")} />`}
      <p>
        ${a?p("On the device, open {address} or scan the QR code, and enter the code",{address:t`<code>${h(a)}</code>`}):p("On the other machine, run {command} with the code",{command:t`<code>yaya connect URL --code …</code>`})}
      </p>
      <p class="big"><code>${h(r.code)}</code> <${g} text=${r.code} /></p>
      <p class="muted">
        ${p("The code works once, until {time}.",{time:t`<${S} at=${r.expires_at} />`})}
      </p>
      ${r.tls_fingerprint&&t`
        <p>
          ${p("No authority vouches for this yaya’s certificate. {connect} accepts the key with {flag}, or the link in the QR code. In a browser, check the certificate before you accept the warning: its public key (SHA-256) must be",{connect:t`<code>yaya connect</code>`,flag:t`<code>--fingerprint</code>`})}
        </p>
        <p><code>${h(r.tls_fingerprint)}</code> <${g} text=${r.tls_fingerprint} /></p>
      `}
      <div class="buttons">
        <button type="button" class="primary" onClick=${s}>${e("Done")}</button>
      </div>
    <//>`:t`<${m} title=${e("Add a device")} onClose=${s}>
    <${w}
      label=${e("Address of this yaya for the device")}
      hint=${e("https://… as the device reaches it; leave it empty for no QR code.")}>
      ${f=>t`<input id=${f} value=${a} spellcheck="false" onInput=${y(c)} />`}
    <//>
    <${w} label=${e("Name")} hint=${e("If empty, the device chooses its name.")}>
      ${f=>t`<input id=${f} value=${o} onInput=${y(n)} />`}
    <//>
    <${b} value=${l} set=${$} />
    <div class="buttons">
      <button type="button" onClick=${s}>${e("Cancel")}</button>
      <${u}
        kind="primary"
        run=${async()=>R(await k("POST","/api/devices/invite",{scopes:[...l],...o&&{label:o},...a&&{url:a}}))}>
        ${e("Create a code")}
      <//>
    </div>
  <//>`}export{L as a,q as b,D as c,b as d,M as e,X as f};
