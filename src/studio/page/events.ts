/** Server-sent events out of the pieces of a response. */

export type ServerEvent = { readonly id: string | null; readonly data: string };

/** Gives the events that each piece of text completes. Comments are passed over. */
export function createEventReader(): (text: string) => readonly ServerEvent[] {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop() ?? "";
    return blocks.flatMap((block) => eventIn(block) ?? []);
  };
}

function eventIn(block: string): ServerEvent | null {
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [, name, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === "id") id = value;
    if (name === "data") data.push(value);
  }
  return data.length === 0 ? null : { id, data: data.join("\n") };
}

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** How long to wait before the next try, after so many in vain. */
export function retryDelay(failures: number): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** Math.max(0, failures - 1));
}
