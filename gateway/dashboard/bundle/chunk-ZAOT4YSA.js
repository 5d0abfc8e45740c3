import{I as m,U as s,h as a,j as l,u as n}from"./chunk-DX5UZMM6.js";import{h as r}from"./chunk-7KQRHSI2.js";function c({text:t,label:o=r("Copy")}){let[e,i]=a(!1);return l(()=>{let p=e?setTimeout(()=>i(!1),1500):0;return()=>clearTimeout(p)},[e]),m`<button
    type="button"
    class="small"
    onClick=${()=>navigator.clipboard?.writeText(t).then(()=>i(!0))}>
    ${e?r("Copied"):o}
  </button>`}var b=({text:t,label:o})=>m`<div class="command">
    <${s} all text=${n(t)} label=${o} />
    <${c} text=${n(t)} />
  </div>`;export{c as a,b};
