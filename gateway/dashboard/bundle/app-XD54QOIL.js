import{ga as a}from"./chunk-DX5UZMM6.js";import"./chunk-7KQRHSI2.js";export{a as main};
