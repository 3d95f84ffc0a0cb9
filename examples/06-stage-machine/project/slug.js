/** "Hello, World" → "hello-world" */
export function slug(text) {
  return text;
}
