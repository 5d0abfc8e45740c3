import{a as C}from"./chunk-43UXHYUF.js";import{C as B,I as p,a as R,b as S,h as E,l as T,n as _}from"./chunk-DX5UZMM6.js";import{e as L,h as y}from"./chunk-7KQRHSI2.js";C("plot");var f=1e3,l=100;function Z(t){if(t<=0)return[0,1];let o=Math.max(t,1e-9)/3,a=10**Math.floor(Math.log10(o)),e=([1,2,5,10].find(s=>s*a>=o)??10)*a,n=Math.max(1,Math.ceil(t/e-1e-9));return Array.from({length:n+1},(s,i)=>Number((i*e).toPrecision(6)))}var D=864e5;function q(t){let o=(t.at(-1)??0)-t[0]>1.5*D,a={month:"short",day:"numeric"},e={hour:"2-digit",minute:"2-digit",...B},n=i=>u=>new Date(u).toLocaleString(L(),i),s=t[1]-t[0]>D/2;return{axis:n(o?a:e),whole:n(s?a:o?{...a,...e}:e)}}function P(t,o){let a=t.values.length,e="M";return t.values.map((n,s)=>{if(n===null)return e="M","";let i=`${e}${(s/Math.max(1,a-1)*f).toFixed(1)} ${(l-n/o*l).toFixed(1)}`;return e="L",i}).join("")}function I(t,o){let a=t.values.length,e=i=>(i/Math.max(1,a-1)*f).toFixed(1),n="",s=-1;for(let i=0;i<=a;i++){let u=t.values[i]??null;if(u===null){s>=0&&(n+=`L${e(i-1)} ${l}Z`),s=-1;continue}s<0&&(n+=`M${e(i)} ${l}`),s<0&&(s=i),n+=`L${e(i)} ${(l-u/o*l).toFixed(1)}`}return n}function j(t,o){let a=t.values.length,e=n=>(t.values[n]??null)===null;return t.values.map((n,s)=>n!==null&&e(s-1)&&e(s+1)?`M${(s/Math.max(1,a-1)*f).toFixed(1)} ${(l-n/o*l).toFixed(1)}h.1`:"").join("")}function J(t,o){let a=t[0]?.values.length??0,e=f/Math.max(1,a);return Array.from({length:a},(n,s)=>{let i=l;return t.map(u=>{let $=(u.values[s]??0)/o*l;return $?(i-=$,p`<rect
        class=${"f "+u.tone}
        x=${(s*e+e*.12).toFixed(1)}
        y=${i.toFixed(1)}
        width=${(e*.76).toFixed(1)}
        height=${$.toFixed(1)} />`):null})})}function H(t,o){let a=t[0]?.values.length??0,e=0;for(let n=0;n<a;n++){let s=t.map(i=>i.values[n]??0);e=Math.max(e,o?s.reduce((i,u)=>i+u,0):Math.max(...s))}return e}function U(t,o){if(!o||!t.length)return-1;let a=t.findIndex(e=>e>=o);return a<0?t.length-1:a>0&&o-t[a-1]<t[a]-o?a-1:a}function ot({values:t,tone:o,label:a,fill:e}){let n={name:"",tone:o,values:t},s=H([n],!1)||1,i=P(n,s*1.1);return p`<svg
    class="spark"
    viewBox=${`0 0 ${f} ${l}`}
    preserveAspectRatio="none"
    role="img"
    aria-label=${a}>
    ${e&&i&&p`<path class=${"f wash "+o} d=${`${i}L${f} ${l}L0 ${l}Z`} />`}
    <path class=${"line "+o} d=${i} />
    <path class=${"line dots "+o} d=${j(n,s*1.1)} />
  </svg>`}var V=()=>T(null).current??=new _(0);function at({times:t,lines:o,show:a,label:e,stacked:n=!1,open:s,cross:i}){let u=V(),$=i??u,[m,M]=E(!1),v=Z(H(o,n)),g=v[v.length-1],h=t.length,d=U(t,$.use()),x=r=>{M(r>=0),$.set(r<0?0:t[r])},{axis:O,whole:F}=q(t),b=n?(d+.5)/h*f:d/Math.max(1,h-1)*f,G=r=>{let c=r.currentTarget.getBoundingClientRect(),w=(r.clientX-c.left)/Math.max(1,c.width);x(Math.max(0,Math.min(h-1,n?Math.floor(w*h):Math.round(w*(h-1)))))},K=r=>{let c={ArrowLeft:-1,ArrowRight:1}[r.key];if(c)x(Math.max(0,Math.min(h-1,(d<0?h:d)+c)));else if(r.key==="Escape"&&d>=0)x(-1);else if(r.key==="Enter"&&d>=0&&s)s(d);else return;r.preventDefault(),r.stopPropagation()},A=Math.min(5,h),k=o.map(r=>{let c=r.values[d];return[r,c==null?"–":a(c)]});return p`<div class="chart">
    <div class="y" aria-hidden="true">${v.map(r=>p`<span>${a(r)}</span>`)}</div>
    <div
      class="area"
      tabindex="0"
      role="group"
      aria-label=${y("{label}. Arrow keys read the values.",{label:e})}
      onPointerMove=${G}
      onPointerLeave=${()=>x(-1)}
      onBlur=${()=>x(-1)}
      onClick=${()=>d>=0&&s?.(d)}
      onKeyDown=${K}>
      <svg viewBox=${`0 0 ${f} ${l}`} preserveAspectRatio="none" role="img" aria-label=${e}>
        ${v.map(r=>{let c=l-r/g*l;return p`<path class=${r?"grid":"base"} d=${`M0 ${c.toFixed(1)}H${f}`} />`})}
        ${n?J(o,g):o.map(r=>{let c=P(r,g);return p`
                ${r.fill&&p`<path class=${"f wash "+r.tone} d=${I(r,g)} />`}
                <path class=${"line "+r.tone} d=${c} />
                <path class=${"line dots "+r.tone} d=${j(r,g)} />
              `})}
        ${d>=0&&p`<path class="cross" d=${`M${b.toFixed(1)} 0V${l}`} />`}
        ${d>=0&&!n&&o.map(r=>{let c=r.values[d]??null;return c!==null&&p`<path
              class=${"line at "+r.tone}
              d=${`M${b.toFixed(1)} ${(l-c/g*l).toFixed(1)}h.1`} />`})}
      </svg>
      ${d>=0&&m&&p`<div class=${b>f/2?"tip left":"tip"}>
        <b>${F(t[d])}</b>
        ${k.map(([r,c])=>p`<span>
              <i class=${"mark "+r.tone}></i>
              ${r.name} <b>${c}</b>
            </span>`)}
      </div>`}
      <span class="sr" role="status">
        ${d>=0&&m&&y("{time}: {values}",{time:F(t[d]),values:k.map(([r,c])=>`${r.name} ${c}`).join(", ")})}
      </span>
    </div>
    <div class="x" aria-hidden="true">
      ${Array.from({length:A},(r,c)=>{let w=Math.round(c/Math.max(1,A-1)*(h-1));return p`<span>${O(t[w])}</span>`})}
    </div>
  </div>`}var rt=({lines:t})=>p`<span class="legend end">
    ${t.map(([o,a])=>p`<span><i class=${"mark "+o.tone}></i>${o.name} <b>${a}</b></span>`)}
  </span>`;var N=[500,15e3],W=4<<20;async function X(t,o){let a=t.getReader(),e=new TextDecoder,n="";for(;;){let{done:s,value:i}=await a.read();if(s)return;if(n+=e.decode(i,{stream:!0}),n.length>W)throw new Error("an event of the stream is too long");let u=n.split(`

`);n=u.pop()??"";for(let $ of u){let m=new Map($.split(`
`).map(v=>{let[g,...h]=v.split(": ");return[g,h.join(": ")]})),M=m.get("data");M!==void 0&&o({name:m.get("event")??"",id:m.get("id")??"",data:JSON.parse(M)})}}}function ct(t,o,a){let e=new AbortController,n=0,s,i=()=>{e.signal.aborted||(s=setTimeout(()=>{u()},Math.min(N[0]*2**n++,N[1])))},u=async()=>{try{let $=await S("GET",t(),{signal:e.signal});a(null),$.body&&await X($.body,m=>{n=0,o(m)})}catch($){if(e.signal.aborted)return;if($ instanceof R&&$.status>=400&&$.status<500)return a($)}i()};return u(),()=>{clearTimeout(s),e.abort()}}export{ct as a,ot as b,V as c,at as d,rt as e};
