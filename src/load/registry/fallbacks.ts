/** The catalogue of built-in prompts that `fallbackKey` may name, in the order it is documented in, with our own words for each. */

/** A line that reads a variable which nothing supplies is left out, so every text must make sense without such lines. */
const TEXTS = {
  initial_iterate: `This is iteration {uv-iteration} of {uv-max_iterations}.
The topic is: {uv-topic}
Take stock of what is there and choose the piece of work that helps most.
Do it, check it, and leave everything so that the next iteration can go on from there.`,
  continuation_iterate: `This is iteration {uv-iteration} of {uv-max_iterations}; {uv-remaining} remain after it.
{uv-previous_summary}

Go on from there: do what helps most next, and check it before you report.`,
  initial_issue: `Work on issue {uv-issue}.
Read the issue with its comments, then the code that it is about.
Say what has to change and how you will know that it is solved; then make the change in small commits.`,
  continuation_issue: `Go on with issue {uv-issue}. This is iteration {uv-iteration}.
{uv-previous_summary}

Do what is still missing and run the tests. Hand over when every point of the issue is met.`,
  initial_issue_label_only: `Work on issue {uv-issue}.
Read the issue with its comments, then the code that it is about.
Say what has to change and how you will know that it is solved; then make the change in small commits.
Leave the issue open: at the end only its labels are changed.`,
  continuation_issue_label_only: `Go on with issue {uv-issue}. This is iteration {uv-iteration}.
{uv-previous_summary}

Do what is still missing and run the tests. Hand over when every point of the issue is met.
Leave the issue open: at the end only its labels are changed.`,
  initial_project: `Work on project {uv-project_number}.
Its phases are: {uv-phases}
Look through the issues of the project, put them in a sensible order, and say what you will do first.`,
  continuation_project: `Go on with project {uv-project_number}. This is iteration {uv-iteration}.
The phase is: {uv-phase}
{uv-previous_summary}

Take the next issue that is open, finish it, and report what is left.`,
  initial_keyword: `The topic is: {uv-topic}
Do the work you are here for, and verify it.
When it is done and verified, and only then, write {uv-completion_keyword}.`,
  continuation_keyword: `This is iteration {uv-iteration}.
{uv-previous_summary}

Go on from there.
When the work is done and verified, and only then, write {uv-completion_keyword}.`,
  initial_manual: `The topic is: {uv-topic}
Do what you are told, one thing at a time, and report what you did.
When nothing is left to do, and only then, write {uv-completion_keyword}.`,
  continuation_manual: `This is iteration {uv-iteration}.
{uv-previous_summary}

Go on with what is left to do.
When nothing is left, and only then, write {uv-completion_keyword}.`,
  initial_structured_signal: `Do the work you are here for, and verify it.
When it is done and verified, and only then, give a fenced block of the type {uv-signal_type}.
It must hold: {uv-required_fields}`,
  continuation_structured_signal: `This is iteration {uv-iteration}.
{uv-previous_summary}

Go on from there. When the work is done and verified, and only then, give the signal.
It is a fenced block of the type {uv-signal_type}.
It must hold: {uv-required_fields}`,
  continuation_project_preparation: `Prepare project {uv-project_number}.
{uv-previous_summary}

Read every open issue of the project. Say what each needs, which depend on others, and the best order to do them in.
Change nothing yet.`,
  continuation_project_processing: `Go on with project {uv-project_number}.
{uv-previous_summary}

Take the next open issue in the order that was decided. Solve it, run the tests, and commit before you take another.`,
  continuation_project_review: `Review project {uv-project_number}.
{uv-previous_summary}

Compare what was asked for with what was done, issue by issue. Name whatever is missing or does not hold.`,
  issue_closure_default: `The work on issue {uv-issue} is said to be finished. See for yourself.
Every point of the issue is met, the tests pass, and everything is committed.
Confirm it only if that is so; otherwise say what is missing.`,
  project_closure_default: `The work on project {uv-project_number} is said to be finished. See for yourself.
Every issue of the project is settled, and nothing that was promised is left out.
Confirm it only if that is so; otherwise say what is missing.`,
  polling_closure_default: `The work is said to be finished. See for yourself.
What the run was to bring about is there now: look at it again, whatever was reported before.
Confirm it only if that is so; otherwise say what is missing.`,
  review_closure_default: `The review is said to be finished. See for yourself.
Everything that was to be reviewed was read, and each finding names its place and what to do about it.
Sum the findings up. Confirm the end only if nothing is left to read.`,
  iteration_closure_default: `The budget of {uv-max_iterations} iterations is used up or the work is done.
{uv-previous_summary}

Leave everything in order: what is finished is committed, and what is not is named.
Report what was reached and what is left.`,
  facilitation_closure_default: `The facilitation is said to be finished. See for yourself.
Every open question has an answer or somebody who will give one, and all who take part know what comes next.
Sum up what was decided. Confirm the end only if that is so.`,
  project_continuation_closure_default: `This part of project {uv-project_number} is said to be finished, and the project goes on.
{uv-previous_summary}

Report what was reached, what is left, and where the next run should begin.`,
  statuscheck_continuation_default: `This is status check {uv-check_count}.
{uv-previous_summary}

Look at how things stand now, not at what was said before. Report what has changed and what still has to.`,
  system: `You are {uv-agent_name}, and you work on your own, step by step.
Do what each step asks and no more. Look before you change something, and check what you changed.
Say what you know and what you assume; never claim what you have not seen.
{uv-verdict_criteria}`,
};

export const FALLBACKS: ReadonlyMap<string, string> = new Map(Object.entries(TEXTS));
