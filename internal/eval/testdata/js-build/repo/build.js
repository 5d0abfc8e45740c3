const fs = require('node:fs');

fs.mkdirSync('dist');
fs.writeFileSync('dist/greet.js', fs.readFileSync('source/greet.js', 'utf8').replace('@NAME@', 'yaya'));
