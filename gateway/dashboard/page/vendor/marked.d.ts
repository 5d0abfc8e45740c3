export { Lexer, type Token, type Tokens } from 'marked';
