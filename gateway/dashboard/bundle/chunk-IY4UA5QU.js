import{I as s,J as d,ba as p,h as $,j as f,l as b,u}from"./chunk-DX5UZMM6.js";import{h as c}from"./chunk-7KQRHSI2.js";function m({title:e,onClose:o,children:n,wide:i}){let a=b(null);return f(()=>{let t=a.current,l=document.activeElement;return t?.showModal(),()=>{t?.close(),l instanceof HTMLElement&&l.focus()}},[]),s`<dialog
    ref=${a}
    class=${i?"wide":""}
    aria-label=${u(e)}
    onCancel=${t=>{t.preventDefault(),o()}}>
    <header>
      <h2>${u(e)}</h2>
      <button type="button" class="icon" aria-label=${c("Close")} onClick=${o}>
        <${d} of="close" />
      </button>
    </header>
    <div class="body">${n}</div>
  </dialog>`}function k({children:e,ask:o,yes:n,run:i,kind:a="",label:t}){let[l,r]=$(!1);return s`
    <button type="button" class=${a} aria-label=${t} onClick=${()=>r(!0)}>
      ${e}
    </button>
    ${l&&s`<${m} title=${n} onClose=${()=>r(!1)}>
      <p>${o}</p>
      <div class="buttons">
        <button type="button" onClick=${()=>r(!1)}>${c("Cancel")}</button>
        <${p}
          arm
          kind="danger"
          run=${async()=>{await i(),r(!1)}}>
          ${n}
        <//>
      </div>
    <//>`}
  `}export{m as a,k as b};
