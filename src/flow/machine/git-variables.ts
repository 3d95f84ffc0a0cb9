/** Variables by which git takes settings from its environment. */

export type Variables = { readonly [name: string]: string | undefined };

/** A folder that only looks like a repository is not one: git would obey its settings, and any tool can write them. */
export const WARY: readonly (readonly [string, string])[] = [["safe.bareRepository", "explicit"]];

/** Further settings, after those that `env` holds already: of two that contradict each other, git takes the later one. */
export function withSettings(
  env: Variables,
  settings: readonly (readonly [string, string])[],
): { readonly [name: string]: string } {
  const given = Number(env["GIT_CONFIG_COUNT"] ?? 0);
  const from = Number.isSafeInteger(given) && given > 0 ? given : 0;
  const pairs = settings.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${from + index}`, key] as const,
    [`GIT_CONFIG_VALUE_${from + index}`, value] as const,
  ]);
  return { ...Object.fromEntries(pairs), GIT_CONFIG_COUNT: String(from + settings.length) };
}
