/** What a file of evaluation tasks may hold: each key with its type, default and meaning. */
import { anything, flag, list, map, number, object, text, type Reads } from "../../flow/shape.ts";

const RATE = { min: 0 };

const TASK = object("One task.", {
  name: text("What is to be done.", { required: true, filled: true }),
  params: map(
    "The parameters of the run. A task adds to those of its file, or replaces them.",
    anything("A value."),
  ),
  input: text("What the run reads from standard input."),
  project: text(
    "A folder beside the file that is copied for each run. Without it the run works in an empty one.",
  ),
  git: anything("Makes the copy a git repository: true, or { commits, branch, dirty }."),
  expect: anything(
    "What is expected of the run; it must also complete, unless outcome, code or exit is given.",
    {
      types: ["object"],
    },
  ),
  hidden: object("What the run never sees, and is judged by after its end.", {
    files: text("A folder beside the file. It is copied into the folder of the run when the run has ended."),
    checks: list("Checks of the agent that are run then.", text("A check."), {
      required: true,
      filled: true,
    }),
  }),
  skip: flag("The task is left out.", { default: false }),
});

export const EVAL_FILE = object("Tasks for lockstep eval.", {
  params: map("Parameters for every task of the file.", anything("A value.")),
  input: text("What every run reads from standard input."),
  project: text("The folder for every task that names none."),
  git: anything("Makes each copy a git repository."),
  min: object("The least rates. They are missed when the whole interval is below.", {
    pass1: number("The share of runs that pass.", RATE),
    pass2: number("The share of two runs that both pass.", RATE),
    pass4: number("The share of four runs that all pass.", RATE),
    pass8: number("The share of eight runs that all pass.", RATE),
  }),
  tasks: list("The tasks.", TASK, { required: true, filled: true }),
});

export type EvalFileSource = NonNullable<Reads<typeof EVAL_FILE>>;
