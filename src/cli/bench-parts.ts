/** The parts of `lockstep bench`, by the names that `--part` takes. */
export const PARTS = [
  "memory",
  "durable",
  "growth",
  "concurrency",
  "resume",
  "load",
  "cold",
  "stages",
  "http",
  "gate",
  "replay",
  "life",
  "batch",
  "sandbox",
] as const;
export type Part = (typeof PARTS)[number];
