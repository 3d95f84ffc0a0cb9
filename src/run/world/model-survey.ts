/** All names of models that mean something here, for a person who wants to know what can be asked and why not. */
import { isInstalled } from "../../backends/ai-sdk/packages.ts";
import type { Price } from "../../backends/ai-sdk/prices.ts";
import { PROVIDERS, type ProviderId } from "../../backends/ai-sdk/providers.ts";
import { addressShown, configFile, readConfig } from "./config.ts";
import { modelFaults, findModel, keyIn, knownNames, whyNot } from "./models.ts";

export { PRICE_SOURCES, PRICES_OF, UNPRICED } from "../../backends/ai-sdk/prices.ts";

/** One name as the command line shows it. */
export type ModelRow = {
  readonly name: string;
  readonly ref: string;
  readonly provider: ProviderId;
  readonly model: string;
  readonly baseUrl: string | null;
  readonly key: { readonly env: string; readonly isSet: boolean } | null;
  readonly package: string;
  readonly isInstalled: boolean;
  readonly price: Price | null;
  /** Why it cannot be asked; null: it can. */
  readonly why: string | null;
  /** The same, without the name of the model. */
  readonly faults: string | null;
};

/** All names that mean something here. CONFIG_INVALID or NO_BACKEND when the user's file is wrong. */
export function surveyModels(env: NodeJS.ProcessEnv): {
  readonly file: string | null;
  readonly rows: readonly ModelRow[];
  /** The user limits what any run may cost: a model without a price is refused then. */
  readonly isCostLimited: boolean;
} {
  const config = readConfig(env);
  const rows = knownNames(config).map((name): ModelRow => {
    const named = findModel(name, { config, env });
    const { ref, provider, model, baseUrl, keyEnv, price } = named;
    const isSet = keyIn(keyEnv, env) !== undefined;
    const given = keyEnv.find((one) => keyIn([one], env) !== undefined) ?? keyEnv[0];
    const key = given === undefined ? null : { env: given, isSet };
    const pack = PROVIDERS[provider].package;
    const why = whyNot(named, env);
    return {
      name,
      ref,
      provider,
      model,
      baseUrl: baseUrl === null ? null : addressShown(baseUrl),
      key,
      package: pack,
      isInstalled: isInstalled(provider),
      price,
      why,
      faults: modelFaults(named, env),
    };
  });
  const { costUsd, unmetered } = config.limits;
  return { file: configFile(env), rows, isCostLimited: costUsd !== undefined && unmetered === undefined };
}
