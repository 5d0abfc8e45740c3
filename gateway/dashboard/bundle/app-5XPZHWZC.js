import{ga as a}from"./chunk-4UBMOJ6S.js";import"./chunk-7KQRHSI2.js";export{a as main};
