/** Findings about the files of flow tests, which `load/tests.ts`, `load/test-settings.ts` and `load/evals.ts` read. */
import { error, warning, type Codes } from "./rule.ts";

export const codes = {
  "TEST-KEY": error(
    "test file",
    "A key or value that the runner does not understand would silently test nothing.",
  ),
  "TEST-STEP": error(
    "unknown step in a test",
    "A test that speaks of a step that does not exist can never pass.",
  ),
  "TEST-LABEL": error("unknown label in a test", "A step can only give the labels that it declares."),
  "TEST-CHECK": error("unknown check in a test", "A result for a check that does not exist is never used."),
  "TEST-PARAM": error(
    "unknown parameter in a test",
    "A run refuses parameters that the agent does not declare.",
  ),
  "TEST-FIXTURE": error("missing fixture", "A test cannot run without the files that it names."),
  "TEST-UNREAD": warning(
    "tests that are not read",
    "Only the files right in the folder of the tests are read; tests elsewhere never run.",
  ),
  "TEST-SETTING": error(
    "settings of tests",
    "A threshold or a property that is not understood would silently hold nothing.",
  ),
  "EVAL-FILE": error(
    "evaluation file",
    "An evaluation costs money: what is not understood stops it before the first request.",
  ),
} satisfies Codes;
