import{ga as a}from"./chunk-URONGCFE.js";import"./chunk-GC4OZNPV.js";export{a as main};
