/** Counts, times and sizes as people read them, and what a command under way is called. */

/** What is being done about a command. */
export const DOING = {
  ask: "asking",
  call: "using tools",
  check: "checking",
  look: "looking",
  hook: "running a hook",
  question: "waiting for an answer",
  wait: "waiting",
} as const;

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** `340 ms`, `2.4 s`, `3 min 20 s`, `5 h 12 min`, `4 d`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}

/** `340 B`, `12 kB`, `3.4 MB`. */
export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** How long ago, in one unit. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}

/** Characters that a terminal draws over two cells: those of East Asia, and pictures. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}|[\u{20000}-\u{3fffd}]/u;
const NARROW = /^(?:\p{Mn}|\p{Me}|\p{Cf})$/u;

/** Cells that a text takes in a terminal. */
export function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += char < "\u0300" ? 1 : NARROW.test(char) ? 0 : WIDE.test(char) ? 2 : 1;
  return width;
}
