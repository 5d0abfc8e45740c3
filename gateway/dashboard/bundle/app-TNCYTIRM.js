import{ga as a}from"./chunk-VJADLQMG.js";import"./chunk-7KQRHSI2.js";export{a as main};
