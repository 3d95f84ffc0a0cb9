/** The version of this package, read from its package.json: beside src/ in development, beside dist/ when installed. */
import { readFileSync } from "node:fs";

export function versionText(json: boolean): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(text) as { readonly version: string };
  return json ? JSON.stringify({ v: 1, version, node: process.versions.node }) : version;
}
