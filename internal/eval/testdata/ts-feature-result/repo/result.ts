/** Says what an unknown thing is, as an Error. */
export function asError(thing: unknown): Error {
  return thing instanceof Error ? thing : new Error(String(thing));
}
