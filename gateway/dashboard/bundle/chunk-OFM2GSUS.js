import{I as a,L as h,M as $,O as p,P as c,ea as m}from"./chunk-DX5UZMM6.js";import{c as l,d as r,g as i,h as e}from"./chunk-7KQRHSI2.js";var g=[{at:"system",title:e("As the system")},{at:"light",title:e("Light")},{at:"dark",title:e("Dark")}],s=({name:o,note:n,children:t})=>a`<li>
    <span class="two"><b class="strong">${o}</b><small>${n}</small></span>${t}
  </li>`;function y(){let o=p.use(),n=h.use();return a`<section class="box" aria-label=${e("This browser")}>
    <header>
      <h2>${e("This browser")}</h2>
      <span class="faint">${e("Kept here, for this browser alone.")}</span>
    </header>
    <ul class="rows">
      <${s} name=${e("Theme")} note=${e("Light, dark, or that of the system.")}>
        <span class="seg" role="group" aria-label=${e("Theme")}>
          ${g.map(t=>a`<button type="button" aria-pressed=${t.at===o} onClick=${()=>c(t.at)}>
                ${t.title}
              </button>`)}
        </span>
      <//>
      <${s} name=${e("Language")} note=${e("The page loads again when it changes.")}>
        <span class="seg" role="group" aria-label=${e("Language")}>
          ${l.map(t=>a`<button
                type="button"
                lang=${t.at}
                aria-pressed=${t.at===r()}
                onClick=${()=>t.at!==r()&&i(t.at)}>
                ${t.name}
              </button>`)}
        </span>
      <//>
      <${s}
        name=${e("Notifications of this browser")}
        note=${e("They name the tool that waits for approval, and never its arguments.")}>
        <span class="flex tells"><${m} /></span>
      <//>
      <${s}
        name=${e("Single keys")}
        note=${e("Such as g and h for Home. The key ? lists them. None works while you write.")}>
        <input
          type="checkbox"
          role="switch"
          class="switch"
          aria-label=${e("Single keys")}
          checked=${n}
          onChange=${t=>$(t.target.checked)} />
      <//>
    </ul>
  </section>`}export{g as a,y as b};
