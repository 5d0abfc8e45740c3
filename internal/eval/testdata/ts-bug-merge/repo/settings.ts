export type Settings = Record<string, string | number | boolean | undefined>;

/** Returns the settings of a, with those of b before them. */
export function merge(a: Settings, b: Settings): Settings {
  const out: Settings = { ...a };
  for (const key of Object.keys(b)) out[key] = b[key] || undefined;
  return out;
}
