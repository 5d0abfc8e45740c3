// Style sheets that only some views need.
// @ts-check

/** Loads a style sheet that only some views need, once. @param {string} name */
export function style(name) {
  const href = `/ui/${name}.css`;
  if (document.head.querySelector(`link[href="${href}"]`)) return;
  document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href }));
}
