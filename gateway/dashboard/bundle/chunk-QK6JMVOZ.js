import{I as t,u as e}from"./chunk-DX5UZMM6.js";var n=({name:r,large:o})=>{let a=[...r].reduce((c,i)=>(c*31+(i.codePointAt(0)??0))%997,7)%4;return t`<span class=${`ava c${a+1}${o?" large":""}`} aria-hidden="true">
    ${e([...r][0]??"?").slice(0,1).toUpperCase()}
  </span>`};export{n as a};
