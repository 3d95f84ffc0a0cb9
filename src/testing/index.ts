/** The public testing kit: suites for your own backends and journals, sketched flows, and a runner in memory. */
export { backendSuite, request } from "./backend-suite.ts";
export { actionSchema, sketchCheck, sketchFlow, sketchPrompt as text, type StepSketch } from "./flows.ts";
export { journalSuite, type JournalPlace, type JournalSuiteOptions } from "./journal-suite.ts";
export { fakeClock, play, type Played, type Scenario } from "./scenario.ts";
