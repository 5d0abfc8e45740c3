import{ga as a}from"./chunk-SIIZ3K2M.js";import"./chunk-7KQRHSI2.js";export{a as main};
