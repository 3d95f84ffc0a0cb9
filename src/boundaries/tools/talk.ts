/** Tools that touch nothing: a list of things to do, and a question when no person is present. */
import { defineTool, done, type Tool } from "./tool.ts";

export function talkTools(): readonly Tool[] {
  return [todoTool(), questionTool()];
}

type Todo = { readonly content: string; readonly status: "pending" | "in_progress" | "completed" };

function todoTool(): Tool {
  return defineTool<{ todos: readonly Todo[] }>({
    name: "TodoWrite",
    description: "Notes the things to do in this step; each call replaces the whole list.",
    required: ["todos"],
    properties: {
      todos: {
        type: "array",
        items: {
          type: "object",
          properties: {
            content: { type: "string", minLength: 1 },
            status: { type: "string", enum: ["pending", "in_progress", "completed"] },
            activeForm: { type: "string" },
            id: { type: "string" },
            priority: { type: "string" },
          },
          required: ["content", "status"],
          additionalProperties: false,
        },
      },
    },
    run: ({ todos }) =>
      done(
        todos.map(({ content, status }) => `[${MARKS[status]}] ${content}`).join("\n") || "Nothing to do.",
      ),
  });
}

const MARKS = { pending: " ", in_progress: "~", completed: "x" } as const;

function questionTool(): Tool {
  return defineTool<{ question?: string; questions?: readonly unknown[] }>({
    name: "AskUserQuestion",
    description: "Asks the user. If no user is available, a default answer is returned.",
    required: [],
    properties: {
      question: { type: "string", description: "The question" },
      questions: {
        type: "array",
        items: { type: "object" },
        description: "Several questions, with their options",
      },
    },
    run: (_input, { autoResponse }) => done(autoResponse),
  });
}
