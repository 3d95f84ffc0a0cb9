/** What holds when a file does not say. Each number and word has its one home here. */
export const DEFAULTS = {
  version: "1.0.0",
  systemPromptPath: "prompts/system.md",
  registry: "steps_registry.json",
  fallbackDir: "prompts",
  schemasDir: "schemas",
  model: "opus",
  autoResponse: "Nobody can answer now. Decide by yourself with what you know, and do not ask again.",

  verdictType: "count:iteration",
  /** Visits after which `count:iteration` is complete. */
  iterations: 10,
  /** Visits after which a run of any other verdict type is stopped. */
  safetyVisits: 20,
  /** Visits after which a run with check prompts is stopped; that form knows no other number. */
  checkedVisits: 100,
  /** Visits after which a run of stages is stopped. */
  stageVisits: 100,
  /** Model responses in one visit of a step. */
  turns: 200,

  permissionMode: "plan",

  c1: "steps",
  edition: "default",
  pathTemplate: "{c1}/{c2}/{c3}/f_{edition}_{adaptation}.md",
  pathTemplateNoAdaptation: "{c1}/{c2}/{c3}/f_{edition}.md",
  intentField: "next_action.action",

  /** How often an ill-fitting answer is sent back within one visit. */
  repairs: 1,
  /** The failed check with this number ends the run. */
  maxAttempts: 3,
  checkTimeoutMs: 600_000,
  checkOutputBytes: 1024 * 1024,
  subprocessTimeoutMs: 30_000,

  /** Characters of one prompt. About a quarter of a million tokens. */
  promptLength: 1_000_000,
  /** Characters in one YAML file, or in the front matter of all stages of a machine together. */
  yamlLength: 256 * 1024,
  /** Levels of nesting, and values in all once aliases are replaced, in one YAML file. */
  yamlDepth: 64,
  yamlNodes: 50_000,
  /** How often aliases of one YAML file may be used. */
  yamlAliases: 100,

  /** Levels of nesting and `$ref` hops in one schema. */
  schemaDepth: 50,
  /** Values in one schema once every `$ref` is replaced by what it names. */
  schemaNodes: 20_000,
} as const;
