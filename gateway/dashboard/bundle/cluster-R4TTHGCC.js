import{b as $}from"./chunk-ZAOT4YSA.js";import{a as b}from"./chunk-IY4UA5QU.js";import{$ as x,I as t,J as k,T as l,V as p,W as y,Y as w,aa as _,ca as T,da as S,h as c,s as g,u,z as f}from"./chunk-DX5UZMM6.js";import{h as e,i}from"./chunk-7KQRHSI2.js";function N(a){let n=URL.canParse(a)?new URL(a):null,o=n?(n.origin+n.pathname).replace(/\/$/,""):"";return/^https?:\/\/[A-Za-z0-9.:[\]_~/-]+$/.test(o)?o.includes("[")?`'${o}'`:o:""}var O=/^'?https?:\/\/(localhost|127\.|\[::1\])/;function C({c:a,done:n}){let[o,r]=c(location.origin),[m]=c(new Set(a.members?.map(d=>d.name))),s=N(o),h=a.members?.filter(d=>!m.has(d.name))??[];return t`<${b} title=${e("Invite a node")} onClose=${n}>
    <${S}
      label=${e("Address of this yaya for the new node")}
      hint=${O.test(s)?e("Other machines do not reach this address: enter the one at which they do."):e("http://… or https://… as the new node reaches it.")}>
      ${d=>t`<input
          id=${d}
          value=${o}
          maxlength="1024"
          spellcheck="false"
          onInput=${T(r)} />`}
    <//>
    ${s?t`
          <p>
            ${i("Run on the machine of {name}:",{name:t`<b><${l} text=${a.node} max=${63} /></b>`})}
          </p>
          <${$}
            text=${`yaya cluster invite --url ${s}`}
            label=${e("The command that invites")} />
        `:t`<p class="problem" role="alert">
          ${e("This is not the address of a yaya, such as https://gate.example:8787.")}
        </p>`}
    <p>
      ${e("It prints the command for the other machine, where yaya has to be stopped.")}
      ${" "}
      ${a.members?.some(d=>d.route)&&i("Replace {place} in it with the address at which the other nodes reach that machine.",{place:t`<code>HOST:PORT</code>`})}
    </p>
    <p>
      ${e("The invitation works once, and expires half an hour after you run the command. With it, a machine can become a node, which has all rights: pass it on as you would a password.")}
    </p>
    ${h.map(d=>t`<p key=${d.name} class="boxed" role="status">
          ${i("{name} has joined.",{name:t`<b><${l} text=${d.name} max=${63} /></b>`})}
        </p>`)}
    <div class="buttons">
      <button type="button" class="primary" onClick=${n}>${e("Done")}</button>
    </div>
  <//>`}function I({c:a,name:n,done:o}){let r=a.members??[],m=!r.some(h=>h.name===n),s=r.some(h=>h.route);return m?t`<${b} title=${e("Remove {name}",{name:u(n)})} onClose=${o}>
      <p role="status">
        ${i("{name} is no longer a node.",{name:t`<b><${l} text=${n} max=${63} /></b>`})}
      </p>
      <div class="buttons">
        <button type="button" class="primary" onClick=${o}>${e("Done")}</button>
      </div>
    <//>`:t`<${b} title=${e("Remove {name}",{name:u(n)})} onClose=${o}>
    <p>
      ${i("{name} stops when it hears of its removal, and cannot start again as a node. Its sessions, servers and settings stay on its machine, and no other node reaches them.",{name:t`<b><${l} text=${n} max=${63} /></b>`})}
      ${" "}
      ${n===a.node&&e("This page is served by that node, and ends with it.")}
    </p>
    ${s&&r.length===2&&t`<p class="notice">${e("Of two nodes, both have to run for a removal.")}</p>`}
    ${s&&r.length===3&&t`<p class="notice">
      ${e("Two nodes remain. Without either of them, no changes can be made.")}
    </p>`}
    <p>
      ${s?i("It has had the identity key of the cluster. If you no longer trust it, run {command} afterwards, and close the port of the nodes to its machine.",{command:t`<code>yaya device rotate-keys --drop-earlier</code>`}):i("It has had the identity key of the cluster. If you no longer trust it, run {command} afterwards, and change the credentials of the NATS servers.",{command:t`<code>yaya device rotate-keys --drop-earlier</code>`})}
    </p>
    ${/^[a-z0-9][a-z0-9-]{0,62}$/.test(n)&&t`
      <p>${e("To remove it, run on the machine of a node that stays:")}</p>
      <${$}
        text=${`yaya cluster remove ${n}`}
        label=${e("The command that removes the node")} />
    `}
    <div class="buttons"><button type="button" onClick=${o}>${e("Cancel")}</button></div>
  <//>`}var A=4e3,v=4,L=e("Several yayas that share devices, tokens, agents and the audit.");function D(){let a=g("/api/cluster",["agents"]),[n,o]=c(null),r=a.data;return t`<${w}
    title=${e("Cluster")}
    lead=${r?.node&&L}
    actions=${r?.node&&t`<button type="button" class="primary" onClick=${()=>o({invite:!0})}>
      <${k} of="plus" />
      ${e("Invite a node")}
    </button>`}>
    <${x} of=${a}>
      ${m=>m.node?t`
              <${P} c=${m} />
              <${z} c=${m} remove=${s=>o({remove:s})} />
            `:t`<${q} />`}
    <//>
    ${n?.invite&&r&&t`<${C} c=${r} done=${()=>o(null)} />`}
    ${n?.remove&&r&&t`<${I} c=${r} name=${n.remove} done=${()=>o(null)} />`}
  <//>`}var q=()=>t`
  <p>
    ${e("This yaya is alone. In a cluster, several yayas share devices, tokens, agents and the audit, and of three one may fail.")}
  </p>
  <p>${e("To make this yaya the first node, stop it and run on its machine:")}</p>
  <${$} text="yaya cluster init --listen HOST:PORT" label=${e("The nodes keep the log")} />
  <p>
    ${e("HOST:PORT is the address at which the other nodes reach this machine. If NATS servers of your own are to keep the log:")}
  </p>
  <${$} text="yaya cluster init --nats URL" label=${e("NATS servers keep the log")} />
`,R=a=>Math.floor((a-1)/2);function P({c:a}){let n=a.status,o=a.quorum_since&&t`<${p} at=${a.quorum_since} />`;return t`
    ${!n.quorum&&t`<p class="problem" role="alert">
      ${o?i("No changes can be made since {time}: this node reaches no majority of the servers that keep the log. The view may be out of date. Start the nodes or servers that are down, or mend the network between them.",{time:o}):e("No changes can be made: this node reaches no majority of the servers that keep the log. The view may be out of date. Start the nodes or servers that are down, or mend the network between them.")}
    </p>`}
    <section class="box">
      <header><h2>${e("Log")}</h2></header>
      <div class="body">
        <dl>
          <dt>${e("State")}</dt>
          <dd>
            <${y} state=${n.state} />
            ${" "}
            ${n.quorum&&(o?i("changes can be made since {time}",{time:o}):e("changes can be made"))}
          </dd>
          <dt>${e("Leader")}</dt>
          <dd>
            ${i("{leader}, term {term}",{leader:n.leader?t`<${l} text=${n.leader} max=${64} />`:e("none"),term:n.term})}
          </dd>
          <dt>${e("Last entry")}</dt>
          <dd>${n.raft_log_index}</dd>
          <dt>${e("Servers")}</dt>
          <dd>
            ${n.node_count>0?n.quorum?e("{n} keep the log, {spare} may fail",{n:n.node_count,spare:R(n.node_count)}):e("{n} keep the log, {least} have to run",{n:n.node_count,least:n.node_count-R(n.node_count)}):e("unknown while none answers")}
          </dd>
          <dt>${e("This node")}</dt>
          <dd><${j} c=${a} /></dd>
        </dl>
      </div>
    </section>
  `}function j({c:a}){return a.behind_ms===void 0?t`<span class="bad">${e("has not heard of the log yet")}</span>`:a.behind_ms<A?a.status.quorum?e("is up to date, {time} behind at most",{time:f(a.behind_ms)}):e("may be behind"):t`<span class="bad">
    ${e("has had no news for {time}, and refuses devices and lasting tokens",{time:f(a.behind_ms)})}
  </span>`}function z({c:a,remove:n}){let o=a.members??[],r=o.some(s=>s.route),m=[e("Node"),...r?[e("Address")]:[],e("Kernel"),e("Agents"),e("Devices"),e("Started"),e("Joined"),...o.length>1?[null]:[]];return t`<section class="box">
    <header><h2>${e("Nodes")}</h2></header>
    <${_}
      label=${e("Nodes")}
      head=${m}
      rows=${o}
      empty=${e("No nodes.")}
      row=${s=>{let h=a.kernels?.find(d=>d.kernel_id===s.kernel_id);return t`<tr key=${s.name}>
          <td>
            <b><${l} text=${s.name} max=${63} /></b>
            ${s.name===a.node&&t` <span class="badge">${e("this one")}</span>`}
          </td>
          ${r&&t`<td><code><${l} text=${s.route||"–"} max=${260} /></code></td>`}
          <td>
            ${h?t`<${y} state=${h.status} />`:t`<span class="muted">–</span>`}
            ${h?.status!=="connected"&&h?.last_seen&&t`
              ${" "}
              <small class="muted">
                ${i("heard of {time}",{time:t`<${p} at=${h.last_seen} />`})}
              </small>
            `}
          </td>
          <td>
            ${a.agents?.filter(d=>s.kernel_id&&d.kernel_id===s.kernel_id).length??0}
          </td>
          <td><${H} all=${s.devices??[]} /></td>
          <td>
            ${s.started_at?t`<${p} at=${s.started_at} />`:t`<span class="muted">${e("not yet")}</span>`}
          </td>
          <td><${p} at=${s.joined_at} /></td>
          ${o.length>1&&t`<td>
            <button
              type="button"
              class="small danger"
              aria-label=${e("Remove {name}",{name:u(s.name)})}
              onClick=${()=>n(s.name)}>
              ${e("Remove …")}
            </button>
          </td>`}
        </tr>`}} />
  </section>`}var H=({all:a})=>a.length?t`
        ${a.slice(0,v).map((n,o)=>t`${o>0&&", "}<${l} key=${n} text=${n} max=${40} />`)}
        ${a.length>v&&" "+e("and {n} more",{n:a.length-v})}
      `:t`<span class="muted">${e("none")}</span>`;export{D as default};
