/** A model on loopback for the agent `notes`: it counts what it is asked for each topic, and can take its time. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { replies } from "../cli/world.ts";

export type Asked = {
  readonly topic: string;
  readonly step: string;
  readonly at: number;
  /** When its answer had gone out, or the other side had given up. */
  end: number | null;
  isGivenUp: boolean;
};

export type FleetModel = {
  readonly asked: Asked[];
  readonly config: object;
  /** How long an answer takes. */
  waitMs: number;
  readonly [Symbol.dispose]: () => void;
};

const STEPS = [replies.initial(), replies.continuation(), replies.closure()];

/** `words`: what it says beside the answer to this question. */
export async function startModel(
  waitMs: number,
  words: (asked: Asked) => string | null = () => null,
): Promise<FleetModel> {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      // What the newest step is called stands in the conversation for the first time.
      const reply = STEPS.findLast(({ step }) => text.includes(step))!;
      const one: Asked = {
        topic: /topic-\d+/.exec(text)![0],
        step: reply.step,
        at: performance.now(),
        end: null,
        isGivenUp: false,
      };
      asked.push(one);
      response.on("close", () => {
        one.end ??= performance.now();
        one.isGivenUp = !response.writableFinished;
      });
      setTimeout(() => {
        const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
        const answer = JSON.stringify(reply.output);
        const beside = words(one);
        const content = beside === null ? answer : `${beside}\n\n\`\`\`json\n${answer}\n\`\`\`\n`;
        const events = [
          { choices: [{ index: 0, delta: { role: "assistant", content } }] },
          { choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage },
        ];
        if (response.destroyed) return;
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(
          `${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")}data: [DONE]\n\n`,
        );
      }, model.waitMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const near = {
    provider: "openai-compatible",
    model: "m",
    baseUrl: `http://127.0.0.1:${port}/v1`,
    apiKeyEnv: "FLEET_TEST_KEY",
  };
  const model: FleetModel = {
    asked,
    waitMs,
    config: { models: { opus: near } },
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return model;
}
