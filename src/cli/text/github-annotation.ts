/** Lines that GitHub Actions shows as annotations beside the lines of a file. */
import { escapedInLine } from "../../flow/text/harmless.ts";

/** GitHub shows so many of each level for a step, and hides the others without a message. */
export const MOST_ANNOTATIONS = 10;

export type Annotation = {
  readonly level: "error" | "warning" | "notice";
  /** Relative to the checkout. */
  readonly file: string;
  readonly line: number;
  readonly column?: number;
  readonly title: string;
  readonly lines: readonly string[];
};

/** Nothing that stands in a text of others ends the annotation or begins another command of GitHub. */
export function githubAnnotation({ level, file, line, column, title, lines }: Annotation): string {
  const place = column === undefined ? `line=${line}` : `line=${line},col=${column}`;
  const text = lines.map((one) => escapedInLine(one, 2000)).join("\n");
  return `::${level} file=${property(file)},${place},title=${property(title)}::${data(text)}`;
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(escapedInLine(text, 2000)).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
