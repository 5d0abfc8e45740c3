import{ga as a}from"./chunk-IFUUYDKJ.js";import"./chunk-GC4OZNPV.js";export{a as main};
