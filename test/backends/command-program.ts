/** A program that answers as a model would: with the next reply of a file, if it sees what that expects. */
import { readFileSync, writeFileSync } from "node:fs";

type Reply = { readonly saw?: readonly string[] };

const file = process.argv[2]!;
const { system, prompt } = JSON.parse(readFileSync(0, "utf8")) as { system: string; prompt: string };
const [next, ...rest] = JSON.parse(readFileSync(file, "utf8")) as readonly Reply[];
writeFileSync(file, JSON.stringify(rest));
const { saw = [], ...reply } = next ?? {};
const missing = saw.find((word) => !`${system}\n${prompt}`.includes(word));
if (missing !== undefined) throw new Error(`${missing} is not in the request: ${prompt}`);
process.stdout.write(JSON.stringify(reply));
