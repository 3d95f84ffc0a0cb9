/** Descriptors of children: those that our own process was started with are not for them. */

/** What a child gets as a descriptor: as Node's `stdio` takes it. */
export type Stdio = "ignore" | "pipe" | "ipc" | number;

/**
 * The same descriptors, and at each inherited number `nothing` in its place: a descriptor of /dev/null. Node cannot close a
 * number in a child, and ours must stay open: it may hold a lock of the person who started us.
 */
export function sealed(own: readonly Stdio[], inherited: readonly number[], nothing: number): Stdio[] {
  const length = Math.max(own.length, ...inherited.map((number) => number + 1));
  const isInherited = new Set(inherited);
  return Array.from({ length }, (_, number) => own[number] ?? (isInherited.has(number) ? nothing : "ignore"));
}
