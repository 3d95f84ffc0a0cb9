/** The one error that is thrown on purpose, apart from the library's front door: `check` alone then loads no engine. */
export { RunnerError } from "../engine/ports.ts";
