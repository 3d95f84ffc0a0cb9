/** Spans of a trace: what something that takes time is called, when it was, and what is known about it. */

/** `key` and `parent` name spans within one trace; ids are made from these names. Times are epoch milliseconds. */
export type TraceSpan = {
  readonly key: string;
  readonly parent: string | null;
  readonly name: string;
  /** `client`: somebody else does the work. */
  readonly kind: "internal" | "client";
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly failed: boolean;
};

export type Attributes = { readonly [name: string]: string | number | boolean | readonly string[] };
