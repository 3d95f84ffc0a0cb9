/** Lockstep as a library. */
export {
  loadAgentDefinition,
  StepFlowRunner,
  type AgentDefinition,
  type RunnerResult,
} from "./definition.ts";
export { check, load, type Findings, type Loaded, type LoadOptions } from "./load.ts";
export {
  resumeBatch,
  runBatch,
  type Batch,
  type BatchItem,
  type BatchOptions,
  type ResumeBatchOptions,
} from "./batch.ts";
export type { DriveOptions, ResumeOptions, RunOptions } from "./options.ts";
export { resume } from "./resume.ts";
export { run, runLoaded } from "./open.ts";
export {
  findRun,
  listRuns,
  readRun,
  show,
  type RecordedRun,
  type RunSummary,
  type Shown,
} from "./records/runs.ts";
export type { ForeignQuestion, ForeignRun, TrustJournal } from "./trust/foreign-state.ts";
export type { WorktreeOptions } from "./world/worktree.ts";
export { answerQuestion, questionsOf, type Questions } from "./people/answer.ts";
export type { OpenQuestion } from "../tell/open-questions.ts";
export { pauseRun, stopRun, type Steered } from "./people/steer.ts";
export { exportRun, importRun, type Bundle } from "./records/bundle.ts";
export { auditRun, compareRuns, logs, why } from "./records/reports.ts";
export type { AuditRecord } from "../tell/audit.ts";
export type { Comparison } from "../tell/compare.ts";
export { replayRun } from "./records/replay.ts";
export { whatIf, type WhatIf } from "./records/whatif.ts";
export { followRun } from "./watch/follow.ts";
export { fork, type Edits, type ForkOptions } from "./fork.ts";
export { openExistingJournal, openJournal } from "./records/journal.ts";
export { createMemoryJournal } from "../journal/memory.ts";
export { createAiSdk } from "./world/backend.ts";
export { createScripted } from "../backends/scripted/scripted.ts";
export { parseScript, type ScriptReply } from "../backends/scripted/script.ts";
export {
  RunnerError,
  type Backend,
  type Journal,
  type TurnRequest,
  type TurnResult,
} from "../engine/ports.ts";
export type { Level, LogLine } from "../tell/log-line.ts";
export type { Result } from "../tell/result.ts";
export type { Why } from "../tell/why.ts";
export type { Flow, Step } from "../flow/flow.ts";
export type { Deed } from "../flow/deed.ts";
export type { Entry, Event } from "../flow/event.ts";
export type { Problem } from "../flow/problem.ts";
