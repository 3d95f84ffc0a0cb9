/** The flag of a parameter beside those of the command line. */

/** Whether a flag is free for a parameter. `clash`: the one whose place it would take; a reserved one cannot be taken. */
export type Claim =
  | { readonly kind: "free" }
  | { readonly kind: "shadows" | "reserved"; readonly clash: string };
