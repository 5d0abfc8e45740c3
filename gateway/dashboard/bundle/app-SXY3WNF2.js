import{ga as a}from"./chunk-YHUR4FGE.js";import"./chunk-7KQRHSI2.js";export{a as main};
