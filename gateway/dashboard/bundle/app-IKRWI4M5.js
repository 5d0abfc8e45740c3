import{ga as a}from"./chunk-GQYQ4KVB.js";import"./chunk-7KQRHSI2.js";export{a as main};
