function n(t){let e=`/ui/${t}.css`;document.head.querySelector(`link[href="${e}"]`)||document.head.append(Object.assign(document.createElement("link"),{rel:"stylesheet",href:e}))}export{n as a};
