/** Documents that are read out of recorded runs and of agents stay as they are; `npm run kept` writes them anew. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NAMES, readingOf, writtenReading } from "./readings.ts";

for (const name of NAMES)
  test(`what is read of ${name}`, async () => {
    assert.deepEqual(await readingOf(name), writtenReading(name));
  });
