export const greet = (who) => `hello ${who}, I am @NAME@`;
