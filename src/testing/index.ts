/** The public testing kit: suites for your own backends and journals, sketched flows, and a runner in memory. */
export { backendSuite, request } from "./backend-suite.ts";
export { actionSchema, sketchCheck, sketchFlow, sketchPrompt as text, type StepSketch } from "./flows.ts";
export { journalSuite, type JournalPlace, type JournalSuiteOptions } from "./journal-suite.ts";
export { fakeClock, play, type Played, type Scenario } from "./scenario.ts";
export {
  agentTests,
  flowTests,
  type AgentTests,
  type AgentTestsOptions,
  type DeclareTest,
} from "./agent-tests.ts";
export type { TestResult } from "./flow-tests.ts";
export type { Fuzzed, FuzzOptions } from "./fuzz.ts";
export type { Coverage } from "../proof/coverage.ts";
export type { Unmet } from "../proof/expect.ts";
export type { FlowTest } from "../flow/flow-test.ts";
