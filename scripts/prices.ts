/**
 * Makes `src/backends/ai-sdk/prices.json` from two maintained data sets, and keeps the figures it was made from for the tests:
 *
 *     npm install --no-save --ignore-scripts --prefix /tmp/prices @earendil-works/pi-ai@1.5.0 @pydantic/genai-prices@0.1.8
 *     node scripts/prices.ts /tmp/prices && npm run format
 *
 * The first has the newer models and the most tokens of a response. The second is asked about every model that the
 * provider packages list and the first does not have. Only figures are taken, no text.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** US dollars for a million tokens; 0 for the cache: not charged apart from the input. */
export type Figures = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
};
export type SourceModel = Figures & {
  readonly maxOutput?: number;
  readonly tiers?: readonly (Figures & { readonly above: number })[];
};
export type Source = {
  readonly sources: readonly { readonly package: string; readonly version: string; readonly date: string }[];
  /** By `provider/model`. */
  readonly models: { readonly [ref: string]: SourceModel };
  /** Every model for text that the provider packages list. */
  readonly listed: readonly string[];
};

/** Names that neither set has: each costs what the model does that it stands for. */
const SAME: { readonly [ref: string]: string } = { "openai/gpt-5.6": "openai/gpt-5.6-sol" };

export function excerpt({ sources, models, listed }: Source) {
  const all = { ...models };
  for (const [ref, same] of Object.entries(SAME)) if (models[same] !== undefined) all[ref] = models[same];
  const refs = Object.keys(all).toSorted();
  const kept = refs.filter((ref) => {
    const family = undated(ref);
    return family === ref || JSON.stringify(all[family]) !== JSON.stringify(all[ref]);
  });
  return {
    about: "US dollars for a million tokens. Made by scripts/prices.ts; do not edit.",
    date: sources
      .map(({ date }) => date)
      .toSorted()
      .at(-1)!,
    sources,
    models: Object.fromEntries(kept.map((ref) => [ref, priced(all[ref]!)])),
    unpriced: listed.filter((ref) => all[ref] === undefined && all[undated(ref)] === undefined),
  };
}

function undated(ref: string): string {
  return ref.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "");
}

function priced({ maxOutput, tiers, ...figures }: SourceModel) {
  return {
    ...charged(figures),
    ...(tiers !== undefined && { tiers: tiers.map(({ above, ...more }) => ({ above, ...charged(more) })) }),
    ...(maxOutput !== undefined && { maxOutput }),
  };
}

function charged({ input, output, cacheRead, cacheWrite }: Figures) {
  return {
    input,
    output,
    ...(cacheRead > 0 && { cacheRead }),
    ...(cacheWrite > 0 && { cacheWrite }),
  };
}

// Reading the sets.

const PROVIDERS = ["anthropic", "openai", "google"] as const;
/** Where each provider package lists its models for text, and which of those are for something else. */
const LISTS = {
  anthropic: /AnthropicModelId/,
  openai: /OpenAI(?:Chat|Responses)ModelId/,
  google: /GoogleModelId/,
};
const OTHER = /image|tts|audio|live|banana|robotics|computer-use|research|aqa|gemma|search-preview|gpt-3\.5/;

export function listedModels(root: string): readonly string[] {
  const refs = PROVIDERS.flatMap((provider) => {
    const types = readFileSync(join(root, "node_modules", "@ai-sdk", provider, "dist", "index.d.ts"), "utf8");
    const lists = types
      .split("\n")
      .filter((line) => LISTS[provider].test(/^type (\w+) =/.exec(line)?.[1] ?? ""));
    const ids = lists.flatMap((line) => [...line.matchAll(/'([^']+)'/g)].map(([, id = ""]) => id));
    return ids.filter((id) => !OTHER.test(id)).map((id) => `${provider}/${id}`);
  });
  return [...new Set(refs)].toSorted();
}

type Catalog = {
  readonly [api: string]: {
    readonly [key: string]: {
      readonly id: string;
      readonly type: string;
      readonly maxTokens?: number;
      readonly cost: Figures & {
        readonly tiers?: readonly (Figures & { readonly inputTokensAbove: number })[];
      };
    };
  };
};

function readCatalog(folder: string): { readonly [ref: string]: SourceModel } {
  const rows = PROVIDERS.flatMap((provider) => {
    const file = join(folder, "dist", "providers", "data", `${provider}.json`);
    const catalog = JSON.parse(readFileSync(file, "utf8")) as Catalog;
    return Object.values(catalog)
      .flatMap((group) => Object.values(group))
      .filter(({ type, cost }) => type === "chat" && cost.output > 0)
      .map(({ id, maxTokens, cost: { tiers, ...cost } }): [string, SourceModel] => [
        `${provider}/${id}`,
        {
          ...cost,
          ...(tiers !== undefined && {
            tiers: tiers.map(({ inputTokensAbove: above, ...more }) => ({ above, ...more })),
          }),
          ...(maxTokens !== undefined && { maxOutput: maxTokens }),
        },
      ]);
  });
  return Object.fromEntries(rows);
}

type Unit =
  | number
  | { readonly base: number; readonly tiers: readonly { readonly start: number; readonly price: number }[] };
type Asked = {
  readonly calcPrice: (
    usage: { readonly input_tokens: number; readonly output_tokens: number },
    model: string,
    about: { readonly providerId: string; readonly timestamp: Date },
  ) => { readonly model_price: { readonly [unit: string]: Unit | undefined } } | null;
};

function askFor(
  ref: string,
  { calcPrice }: Asked,
  date: string,
): readonly (readonly [string, SourceModel])[] {
  const [providerId = "", model = ""] = ref.split("/");
  const found = calcPrice({ input_tokens: 1, output_tokens: 1 }, model, {
    providerId,
    timestamp: new Date(date),
  });
  const units = found?.model_price ?? {};
  if (units.input_mtok === undefined || units.output_mtok === undefined) return [];
  const figures = (of: (unit: Unit) => number): Figures => ({
    input: of(units.input_mtok!),
    output: of(units.output_mtok!),
    cacheRead: of(units.cache_read_mtok ?? 0),
    cacheWrite: of(units.cache_write_mtok ?? 0),
  });
  const starts = typeof units.input_mtok === "number" ? [] : units.input_mtok.tiers.map(({ start }) => start);
  const tierOf = (unit: Unit, above: number) =>
    typeof unit === "number" ? unit : unit.tiers.find(({ start }) => start === above)!.price;
  const tiers = starts.map((above) =>
    Object.assign(
      { above },
      figures((unit) => tierOf(unit, above)),
    ),
  );
  const base = figures((unit) => (typeof unit === "number" ? unit : unit.base));
  return [[ref, tiers.length === 0 ? base : { ...base, tiers }]];
}

async function readSource(folder: string, root: string): Promise<Source> {
  const [first, second] = ["@earendil-works/pi-ai", "@pydantic/genai-prices"].map((name) => {
    const place = join(folder, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(place, "package.json"), "utf8")) as { version: string };
    return { place, package: name, version };
  }) as [
    { place: string; package: string; version: string },
    { place: string; package: string; version: string },
  ];
  const manifest = join(first.place, "dist", "providers", "data", ".manifest.json");
  const { generatedAt } = JSON.parse(readFileSync(manifest, "utf8")) as { generatedAt: string };
  const date = generatedAt.slice(0, 10);
  const models = readCatalog(first.place);
  const listed = listedModels(root);
  const asked = (await import(pathToFileURL(join(second.place, "dist", "index.js")).href)) as Asked;
  const missing = listed.filter((ref) => models[ref] === undefined && models[undated(ref)] === undefined);
  const more = Object.fromEntries(missing.flatMap((ref) => askFor(ref, asked, date)));
  return {
    sources: [
      { package: first.package, version: first.version, date },
      { package: second.package, version: second.version, date: SECOND_DATE },
    ],
    models: { ...models, ...more },
    listed,
  };
}

/** When that version was published: the set does not say. */
const SECOND_DATE = "2026-09-23";

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const source = await readSource(process.argv[2] ?? "", root);
  const write = (file: string, value: unknown) =>
    writeFileSync(join(root, file), `${JSON.stringify(value, null, 1)}\n`);
  write("test/fixtures/prices-source.json", source);
  write("src/backends/ai-sdk/prices.json", excerpt(source));
}
