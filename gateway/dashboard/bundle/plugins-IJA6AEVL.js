import{a as p}from"./chunk-43UXHYUF.js";import{$ as g,A as x,I as a,J as A,T as n,U as H,V as D,W as c,Y as k,Z as h,aa as I,ba as P,c as y,d as S,p as v,q as u,s as m,u as $,w as b,x as O,z as _}from"./chunk-DX5UZMM6.js";import{h as e,i as f,j as C}from"./chunk-7KQRHSI2.js";function L(){let t=m("/api/hooks",["config"]);return a`<section class="box" aria-label=${e("Hooks")}>
    <header>
      <h2>${e("Hooks")}</h2>
      <span class="faint">${e("Commands that run when something happens.")}</span>
    </header>
    <${g} of=${t}>
      ${l=>a`
        ${l.problem&&a`<p class="problem within" role="alert">
          ${l.denies?e("Calls of tools are denied, since hooks cannot be read:"):e("A file has a mistake, and the hooks that were read before are in force:")}
          ${" "}
          <${n} text=${l.problem} max=${1e3} />
        </p>`}
        ${l.hooks.length?a`<table class="list" role="table" aria-label=${e("Hooks")}>
              <thead role="rowgroup">
                <tr role="row">
                  <th role="columnheader">${e("Hook")}</th>
                  <th role="columnheader">${e("Event")}</th>
                  <th role="columnheader">${e("Command")}</th>
                  <th role="columnheader" class="num">${e("At most")}</th>
                </tr>
              </thead>
              <tbody role="rowgroup">
                ${l.hooks.map(o=>a`<tr role="row" key=${o.file+o.name}>
                    <td role="cell" class="p1">
                      <span class="two">
                        <b class="strong"><${n} text=${o.name} max=${80} /></b>
                        <small class="mono"><${n} text=${o.file} max=${200} /></small>
                      </span>
                    </td>
                    <td role="cell" class="p2">
                      ${$(o.event)}
                      ${o.tool&&a`<br /><small class="faint"><${n} text=${o.tool} max=${80} /></small>`}
                    </td>
                    <td role="cell" class="p3">
                      <code><${n} text=${o.command} max=${200} /></code>
                    </td>
                    <td role="cell" class="num">${_(o.timeout_ms)}</td>
                  </tr>`)}
              </tbody>
            </table>`:a`<${h}>
              ${e("No hooks. The file hooks.toml in yaya’s configuration folder has them.")}
            <//>`}
        ${!!l.ignored.length&&a`<p class="faint under">
          ${e("Hooks of Claude Code that yaya does not run: {names}",{names:x(l.ignored)})}
        </p>`}
      `}
    <//>
  </section>`}var E=t=>t.shadowed_by?f("not used: {other} counts",{other:a`<code><${n} text=${t.shadowed_by} max=${120} /></code>`}):t.manual?e("by people"):e("by agents and people");function N(){let t=m("/api/skills",["config"]);return a`<section class="box" aria-label=${e("Skills")}>
    <header>
      <h2>${e("Skills")}</h2>
      <span class="faint">${e("Instructions that agents read when they need them.")}</span>
    </header>
    <${g} of=${t}>
      ${l=>a`
        ${l.skills.length?a`<table class="list" role="table" aria-label=${e("Skills")}>
              <thead role="rowgroup">
                <tr role="row">
                  <th role="columnheader">${e("Skill")}</th>
                  <th role="columnheader">${e("Description")}</th>
                  <th role="columnheader">${e("Use")}</th>
                </tr>
              </thead>
              <tbody role="rowgroup">
                ${l.skills.map(o=>a`<tr role="row" key=${o.folder}>
                    <td role="cell" class="p1">
                      <span class="two">
                        <b class="strong"><${n} text=${o.name} max=${64} /></b>
                        <small class="mono"><${n} text=${o.folder} max=${200} /></small>
                      </span>
                    </td>
                    <td role="cell" class="p3">
                      <${n} text=${b(o.description)} max=${300} />
                      ${o.warnings.map(s=>a`<br /><small class="warn"><${n} text=${s} max=${200} /></small>`)}
                    </td>
                    <td role="cell" class="p2">${E(o)}</td>
                  </tr>`)}
              </tbody>
            </table>`:a`<${h}>${e("No skills.")}<//>`}
        ${!!l.broken.length&&a`<div class="under">
          <p class="notice">
            ${C(l.broken.length,"{n} folder is not a skill, or not read as a whole:","{n} folders are not skills, or not read as a whole:")}
          </p>
          <ul class="plain">
            ${l.broken.map(o=>a`<li key=${o.folder}>
                  <code><${n} text=${o.folder} max=${200} /></code>
                  ${" "}
                  <${n} text=${o.reason} max=${500} />
                </li>`)}
          </ul>
        </div>`}
      `}
    <//>
  </section>`}p("servers");p("models");p("devices");p("plugins");var G=new Map([["pre_tool",e("calls of tools")],["prompt",e("your messages")]]),M=new Map([["strategy",e("strategy")],["llm-provider",e("models")],["memory",e("memory")],["tool",e("tools")],["skill",e("skills")],["adapter",e("adapter")]]),q=t=>M.get(t.category)??$(t.category),T=t=>x((t.guards??[]).map(l=>G.get(l)??l)),j=t=>t.status==="unloaded"&&!t.enabled?"disabled":t.status;function K({rest:[t]}){let l=m("/api/plugins",["plugins","config"]),o=m("/api/doctor",["plugins"]),s=t?l.data?.plugins.find(i=>i.name===t):null,d=i=>o.data?.find(w=>w.plugin===i),r=()=>{l.reload(),o.reload()};return t&&l.data&&!s?a`<${k} title=${t}>
      <${h} icon="plugin">
        ${e("Plugin not found.")} <a href=${u("plugins")}>${e("All plugins")}</a>
      <//>
    <//>`:s?a`<${F} p=${s} health=${d(s.name)} again=${r} />`:a`<${k} title=${e("Plugins")}>
    <${g} of=${l}>
      ${i=>a`
          <${U} all=${i.plugins} />
          <${R}
            label=${e("Installed plugins")}
            all=${i.plugins.filter(w=>!w.bundled)}
            of=${d}
            empty=${e("No plugins are installed. On a terminal, yaya plugin install adds one.")} />
        `}
    <//>
    <${L} />
    <${N} />
    ${l.data&&a`<${R}
      label=${e("Parts of yaya")}
      all=${l.data.plugins.filter(i=>i.bundled)}
      of=${d} />`}
  <//>`}var U=({all:t})=>t.filter(l=>l.guards?.length&&l.status!=="loaded"&&l.enabled).map(l=>a`<p key=${l.name} class="problem" role="alert">
          ${f("{name} guards {what} and does not work: they are denied.",{name:a`<a href=${u("plugins",l.name)}><${n} text=${l.name} max=${64} /></a>`,what:T(l)})}
        </p>`),R=({label:t,all:l,of:o,empty:s=""})=>a`<section class="box" aria-label=${t}>
    <header><h2>${t}</h2><span class="faint">${l.length}</span></header>
    ${l.length?a`<table class="list" role="table" aria-label=${t}>
          <thead role="rowgroup">
            <tr role="row">
              <th role="columnheader">${e("Plugin")}</th>
              <th role="columnheader">${e("State")}</th>
              <th role="columnheader" class="wide">${e("Kind")}</th>
              <th role="columnheader">${e("Health")}</th>
              <th role="columnheader"><span class="sr">${e("Actions")}</span></th>
            </tr>
          </thead>
          <tbody role="rowgroup">
            ${l.map(d=>a`<${V} key=${d.name} p=${d} health=${o(d.name)} />`)}
          </tbody>
        </table>`:a`<${h} icon="plugin">${s}<//>`}
  </section>`,V=({p:t,health:l})=>a`<tr role="row">
    <td role="cell" class="p1">
      <span class="two">
        <a class="strong" href=${u("plugins",t.name)}><${n} text=${t.name} max=${64} /></a>
        <small>
          ${$(t.version)}
          ${!!t.guards?.length&&a`, ${e("guards {what}",{what:T(t)})}`}
        </small>
      </span>
    </td>
    <td role="cell" class="p2">
      <${c} state=${j(t)} />
      ${t.enabled!==(t.status==="loaded")&&t.status!=="failed"&&a`<br /><small class="faint">${e("from the next start on")}</small>`}
    </td>
    <td role="cell" class="wide">${t.package?.parts?e("package"):q(t)}</td>
    <td role="cell" class="p4">
      ${t.error?a`<small class="bad"><${n} text=${t.error} max=${160} /></small>`:a`<${B} health=${l} />`}
    </td>
    <td role="cell" class="p3">
      ${v("config:write")&&t.name!=="web"&&a`<span class="acts"><${z} p=${t} /></span>`}
    </td>
  </tr>`,z=({p:t})=>a`<${P}
    kind="small quiet"
    label=${t.enabled?e("Turn off {name}",{name:$(t.name)}):e("Turn on {name}",{name:$(t.name)})}
    run=${()=>y("PATCH",`/api/plugins/${S(t.name)}`,{enabled:!t.enabled})}>
    ${t.enabled?e("Turn off"):e("Turn on")}
  <//>`,B=({health:t})=>t?a`
        <${c} state=${t.status} />
        ${t.status!=="ok"&&a`<br /><small class="muted"><${n} text=${t.summary} max=${120} /></small>`}
      `:a`<span class="muted">–</span>`;function F({p:t,health:l,again:o}){let s=t.package,d=async()=>{try{await y("POST",`/api/plugins/${S(t.name)}/reload`,{})}finally{o()}};return a`<${k}
    title=${t.name}
    actions=${s&&v("config:write")&&a`<${P} kind="primary" run=${d}><${A} of="restart" />${e("Reload")}<//>`}
    crumb=${a`<a href=${u("plugins")}>${e("Plugins")}</a>`}>
    <p>
      <${c} state=${j(t)} /> ${t.error&&a`<${n} text=${t.error} max=${1e3} />`}
    </p>
    <dl>
      <dt>${e("Version")}</dt>
      <dd>
        ${s?.parts?e("{version}, a package: {format}",{version:$(t.version),format:$(s.parts.format)}):e("{version}, of the kind {kind}",{version:$(t.version),kind:q(t)})}
      </dd>
      ${s?.description&&a`
        <dt>${e("Description")}</dt>
        <dd><${n} text=${b(s.description)} max=${500} /></dd>
      `}
      ${!!t.guards?.length&&a`
        <dt>${e("Guards")}</dt>
        <dd>${e("{what}: while it does not work, they are denied",{what:T(t)})}</dd>
      `}
      <dt>${e("Source")}</dt>
      <dd>
        ${s?a`
              <code><${n} text=${s.source} max=${500} /></code>
              ${s.editable&&a`<br />${e("Editable: changes of its files run without another question.")}`}
            `:t.bundled?e("a part of yaya"):e("unknown")}
      </dd>
      ${s&&a`<dt>${e("Installed")}</dt><dd><${D} at=${s.installed} /></dd>`}
      ${s?.digest&&a`<dt>${e("Digest")}</dt><dd><code><${n} text=${s.digest} max=${100} /></code></dd>`}
      ${!!s?.requires?.length&&a`<dt>${e("Requires")}</dt><dd>${s.requires.map(r=>$(r)).join(", ")}</dd>`}
      ${!!s?.gets?.length&&a`<dt>${e("Gets events")}</dt><dd>${s.gets.map(r=>$(r)).join(", ")}</dd>`}
    </dl>
    ${s?.problem&&a`<p class="problem"><${n} text=${s.problem} max=${1e3} /></p>`}
    ${!!s?.runs?.length&&a`
      <h2>${e("Runs")}</h2>
      <${H} all text=${$(s.runs.join(" "))} label=${e("Its program and arguments")} />
    `}
    ${s?.parts&&a`<${J} of=${s.parts} />`}
    ${s&&!s.parts&&a`
      <h2>${e("Permissions")}</h2>
      <ul class="plain">
        ${s.permissions.map(r=>a`<li key=${r}><${n} text=${r} max=${4096} /></li>`)}
      </ul>
    `}
    <h2>${e("Health")}</h2>
    ${l?a`
          <p><${c} state=${l.status} /> <${n} text=${l.summary} max=${1e3} /></p>
          ${!!l.details?.length&&a`<${I}
            label=${e("Checks")}
            head=${[e("Check"),e("State"),e("Message")]}
            rows=${l.details}
            empty=""
            row=${r=>a`<tr key=${r.name}>
              <td><${n} text=${r.name} max=${100} /></td>
              <td><${c} state=${r.status} /></td>
              <td><${n} text=${r.message} max=${600} /></td>
            </tr>`} />`}
        `:a`<p class="muted" role="status">${e("Loading …")}</p>`}
    ${Object.keys(t.current_config).length>0&&a`
      <h2>${e("Settings")}</h2>
      <${H} text=${O(t.current_config)} label=${e("Settings, secrets masked")} />
    `}
  <//>`}var J=({of:t})=>[{what:e("Servers"),lines:t.servers},{what:e("Skills"),lines:t.skills},{what:e("Hooks"),lines:t.hooks},{what:e("Left out"),lines:t.left_out}].filter(l=>l.lines?.length).map(l=>a`
        <h2 key=${l.what}>${l.what}</h2>
        <ul class="plain">
          ${l.lines?.map(o=>a`<li key=${o}><${n} text=${o} max=${8192} /></li>`)}
        </ul>
      `);export{K as default};
