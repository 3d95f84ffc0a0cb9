/** What the backends share that ask a program: its process, what it is sent, and how its failures read. */
import type { ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import type { Asker, Message, TurnResult } from "../engine/ports.ts";
import { shown } from "../flow/text/harmless.ts";
import { gutter } from "../flow/text/visible.ts";

/** Its input and both outputs are pipes. */
export type AgentChild = ChildProcessByStdio<Writable, Readable, Readable>;

/** The run that an asker belongs to. */
export function runOf({ key }: Asker): string {
  return key.split("/", 1)[0]!;
}

/** The new messages of a conversation as one text, for a program that remembers the others. */
export function conversationText(messages: readonly Message[]): string {
  return messages
    .map((message) =>
      message.role === "tool" ? message.results.map(({ content }) => content).join("\n") : message.text,
    )
    .join("\n\n");
}

export const INTERRUPTED_FAULT = { kind: "other", message: "The query was interrupted." } as const;
export const INTERRUPTED: TurnResult = { kind: "fault", fault: INTERRUPTED_FAULT };

/** What a program wrote to stderr, behind the reason of its failure. No line of it can be taken for one of ours. */
export function withPrinted(reason: string, printed: string): string {
  const last = shown(stripVTControlCharacters(printed).trim());
  return last === "" ? reason : `${reason}\nIt printed:\n${gutter(last)}`;
}
