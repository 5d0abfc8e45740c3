// top returns the n highest scores, the highest first.
export function top(scores, n) {
  return scores.sort().reverse().slice(0, n);
}
