import{ga as a}from"./chunk-U2B2JZMO.js";import"./chunk-GC4OZNPV.js";export{a as main};
