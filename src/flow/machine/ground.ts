/** The folder that a run works in, as the rooms that use files see it: paths judged, and held by descriptors. */

/** `path` is absolute and without links; `parts` are those below the ground; `shown` has forward slashes. */
export type InGround = {
  readonly kind: "inside";
  readonly path: string;
  readonly parts: readonly string[];
  readonly shown: string;
};
export type GroundPlace = InGround | { readonly kind: "refused"; readonly why: string };

export type Grounded = {
  /** Where the path really is, if that is inside and may be read. */
  readonly reading: (path: string) => GroundPlace;
  readonly pin: () => Pins;
};

/** Paths to what lies below the ground. Each is good until the next one is asked for. */
export type Pins = {
  /** The folder with these parts. With `make`, folders that are missing are made. */
  readonly folder: (parts: readonly string[], make?: "make") => string;
  /** The last part, in the folder of the parts before it. The last part itself need not exist. */
  readonly at: (parts: readonly string[], make?: "make") => string;
  readonly [Symbol.dispose]: () => void;
};
