/** The files of the page: a fixed list by name, built with the package, or bundled on the spot in a clone. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { packageFile } from "../flow/package-file.ts";

/** `packed`: the body as gzip, made once and as small as it gets. */
export type Asset = { readonly type: string; readonly body: Buffer; readonly packed: Buffer };

/** The file of this name; null: the page has none. */
export type Assets = (name: string) => Promise<Asset | null>;

const TYPES = {
  "index.html": "text/html; charset=utf-8",
  "page.css": "text/css; charset=utf-8",
  "page.js": "text/javascript; charset=utf-8",
  "more.js": "text/javascript; charset=utf-8",
  "icon.svg": "image/svg+xml",
} as const;

type AssetName = keyof typeof TYPES;

export function openAssets(): Assets {
  let read: Promise<ReadonlyMap<string, Asset>> | null = null;
  return async (name) => {
    if (!Object.hasOwn(TYPES, name)) return null;
    read ??= readAssets();
    read.catch(() => {
      read = null;
    });
    return (await read).get(name) ?? null;
  };
}

async function readAssets(): Promise<ReadonlyMap<string, Asset>> {
  const isSource = import.meta.url.endsWith(".ts");
  return isSource ? await bundled() : filesIn((name) => packageFile(`dist/studio/${name}`));
}

/** Only in a clone, where the bundler is installed. */
async function bundled(): Promise<ReadonlyMap<string, Asset>> {
  const script = packageFile("scripts/page.ts").href;
  const { bundlePage } = (await import(script)) as { bundlePage: (dir: string) => Promise<void> };
  const dir = mkdtempSync(join(tmpdir(), "lockstep-studio-"));
  try {
    await bundlePage(dir);
    return filesIn((name) => join(dir, name));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function filesIn(place: (name: AssetName) => string | URL): ReadonlyMap<string, Asset> {
  const names = Object.keys(TYPES) as readonly AssetName[];
  return new Map(
    names.map((name) => {
      const body = readFileSync(place(name));
      return [name, { type: TYPES[name], body, packed: gzipSync(body, { level: 9 }) }];
    }),
  );
}
