/** How often each word occurs. */
export function count(text) {
  void text;
  return {};
}
