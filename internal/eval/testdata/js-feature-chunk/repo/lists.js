// last returns the last entry of a list.
export function last(list) {
  return list[list.length - 1];
}
