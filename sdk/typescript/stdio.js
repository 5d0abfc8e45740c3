// Standard input and output for the protocol alone.

import { Connection } from "./connection.js";

const maxLine = 64 << 20; // bytes of a line from yaya

/** Cuts bytes into lines; the function that it returns gets each piece. */
export function lines(got) {
  let kept = [];
  let size = 0;
  return (piece) => {
    for (let from = 0; ; ) {
      const at = piece.indexOf(10, from);
      const part = piece.subarray(from, at < 0 ? piece.length : at);
      kept.push(part);
      size += part.length;
      if (size > maxLine) throw new RangeError(`yaya sent a line of more than ${maxLine >> 20} MiB`);
      if (at < 0) return;
      const line = Buffer.concat(kept).toString("utf8");
      kept = [];
      size = 0;
      from = at + 1;
      if (line.trim() !== "") got(line);
    }
  };
}

/**
 * Serves yaya until it ends the plugin, then exits. console.log and process.stdout write to
 * standard error meanwhile.
 */
export async function serve(plugin) {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  console.log = console.info = console.debug = console.error; // Bun's do not use process.stdout
  const connection = new Connection(plugin, (line) => void write(line));
  process.stdout.on("error", () => connection.end()); // yaya no longer reads
  const feed = lines((line) => connection.receive(line));
  process.stdin.on("data", (piece) => {
    try {
      feed(piece);
    } catch (err) {
      console.error(err);
      connection.end();
    }
  });
  process.stdin.on("end", () => connection.end());
  process.stdin.on("error", () => connection.end());
  await connection.ended;
  try {
    await connection.stop();
  } catch (err) {
    console.error(err);
  }
  await connection.close();
  await new Promise((resolve) => write("", resolve)); // what is still in the buffer
  process.exit(0);
}
