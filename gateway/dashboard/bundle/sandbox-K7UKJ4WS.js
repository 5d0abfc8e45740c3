import{b as l}from"./chunk-5YHDVP7A.js";import{b as c}from"./chunk-ZAOT4YSA.js";import{a as h}from"./chunk-43UXHYUF.js";import{$ as b,I as a,T as n,W as p,Y as u,aa as g,q as $,s as f,u as m}from"./chunk-DX5UZMM6.js";import{h as o,i as s}from"./chunk-7KQRHSI2.js";h("models");function w({s:r}){let t=r.status==="failed"||r.backend==="off";return a`
    ${r.status==="ok"?a`<p class="flex"><${p} state="ok" /> <${n} text=${r.summary} max=${1e3} /></p>`:a`<p class=${t?"problem":"notice"} role="status">
          <${n} text=${r.summary} max=${1e3} />
        </p>`}
    ${r.fix&&a`
      <p>${o("To change that, run on the machine that yaya runs on:")}</p>
      <${c} text=${r.fix} label=${o("The command that changes it")} />
    `}
  `}function k({all:r,profile:t}){let e=r.filter(d=>d.profile===t);return e.length?e.map((d,i)=>a`
        ${i>0&&", "}
        ${d.kind==="server"?a`<a href=${$("servers",d.name??"")}><${n} text=${d.name} max=${40} /></a>`:a`<${l} of="sandbox" text=${d.name} />`}
      `):a`<span class="muted">–</span>`}var x=r=>!r.profile&&!(r.note&&!r.backend),y=(r,t)=>r.length===t.length?o("All profiles"):r.length<=t.length/2?r.join(", "):o("All but {names}",{names:t.map(e=>e.profile).filter(e=>!r.includes(e)).join(", ")});function S(){let r=f("/api/sandbox",["config","servers"]);return a`<${u}
    title=${o("Sandbox")}
    lead=${o("The files, hosts and other resources that programs started by yaya can reach.")}>
    <${b} of=${r}>
      ${t=>a`
        <${w} s=${t} />
        ${t.programs.some(x)&&a`<p class="problem">
          ${s("Outside the sandbox, with all rights of your user: {programs}",{programs:a`<${k} all=${t.programs.filter(x)} profile="" />`})}
        </p>`}
        ${t.programs.some(e=>e.note)&&a`
          <h2>${o("Deviations from the profiles")}</h2>
          <ul class="plain">
            ${t.programs.filter(e=>e.note).map(e=>a`<li key=${e.name} class="bad">
                    <a href=${$("servers",e.name??"")}>
                      <${n} text=${e.name} max=${40} />
                    </a> <${n} text=${e.note} max=${600} />
                  </li>`)}
          </ul>
        `}
        <h2>${o("Profiles")}</h2>
        <${g}
          label=${o("Profiles")}
          head=${[o("Profile"),o("Programs"),o("Access"),o("Not enforced here"),o("Refused connections")]}
          rows=${t.profiles}
          empty=${o("No program starts in a sandbox.")}
          row=${e=>a`<tr key=${e.profile}>
            <td><code>${e.profile}</code></td>
            <td><${k} all=${t.programs} profile=${e.profile} /></td>
            <td>
              ${e.backend==="off"?o("all rights of your user"):a`<${l} of="sandbox" text=${e.about} />`}
            </td>
            <td class=${e.lacks.length?"bad":""}>
              ${e.backend==="off"?o("everything"):e.lacks.length?e.lacks.map((d,i)=>a`
                          ${i>0&&", "}
                          ${d==="hosts"?o("hosts: the network is off"):a`<${l} of="sandbox" text=${d} />`}
                        `):o("nothing")}
            </td>
            <td>${e.denials}</td>
          </tr>`} />
        ${t.backend!=="off"&&t.gaps.length>0&&a`
          <h2>${o("Not enforced here, or only in part")}</h2>
          <dl>
            ${t.gaps.map(e=>a`
                  <dt><bdi>${y(e.profiles,t.profiles)}</bdi></dt>
                  <dd><${n} text=${e.what} max=${1e3} /></dd>
                `)}
          </dl>
        `}
        ${t.backend!=="off"&&t.breaks.length>0&&a`
          <h2>${o("Does not work here, although the profile allows it")}</h2>
          <dl>
            ${t.breaks.map(e=>a`
                  <dt><bdi>${y(e.profiles,t.profiles)}</bdi></dt>
                  <dd><${n} text=${e.what} max=${1e3} /></dd>
                `)}
          </dl>
        `}
        <h2>${o("This machine")}</h2>
        <dl>
          <dt>${o("System")}</dt>
          <dd>
            ${s("{system}, yaya runs as {user}",{system:a`<bdi>${m(t.system)}</bdi>`,user:a`<bdi>${m(t.user)}</bdi>`})}
          </dd>
          <dt>${o("Settings")}</dt>
          <dd>
            <a href=${$("config")}><code>sandbox.mode</code></a> <code>${t.mode}</code>
            , <code>sandbox.backend</code> <code>${t.setting}</code>
          </dd>
          <dt>${o("Back ends")}</dt>
          <dd>
            <ul class="plain">
              ${t.backends.map(e=>a`<li>
                    <code>${e.name}</code> ${e.name===t.backend?o("is used"):e.name==="off"?o("enforces nothing"):e.works?o("works"):s("does not work: {why}",{why:a`<${n} text=${e.why} max=${500} />`})}
                  </li>`)}
            </ul>
          </dd>
        </dl>
      `}
    <//>
  <//>`}export{S as default};
