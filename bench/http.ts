/** What a step costs with a model behind HTTP, against a plain request over a kept connection to the same server. */
import { Agent, createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAiSdk, createMemoryJournal, RunnerError, runLoaded, type Backend } from "../src/run/index.ts";
import { cycle, gaps, loaded, median, micro, row, spread, type Row } from "./measure.ts";

/** Far less than any model takes: what is on top of it is ours. */
const THINKING_MS = 20;
const STEPS = 60;

export async function measureHttp(folder: string): Promise<readonly Row[]> {
  const stamps: number[] = [];
  let thinkingMs = 0;
  const server = createServer((asked, answer) => {
    asked.resume().on("end", () => {
      stamps.push(performance.now());
      const say = () => answer.writeHead(200, { "content-type": "text/event-stream" }).end(ANSWER);
      if (thinkingMs === 0) say();
      else setTimeout(say, thinkingMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const baseUrl = `http://127.0.0.1:${port}/v1`;
    const backend = await createAiSdk({ "*": { provider: "openai-compatible", model: "bench", baseUrl } });
    const measured = async (ask: () => Promise<void>) => {
      stamps.length = 0;
      await ask();
      return median(gaps(stamps));
    };
    const steps = () => measured(() => runSteps(folder, backend));
    const plain = () => measured(() => plainRequests(port));
    for (let round = 0; round < 5; round++) await steps();
    thinkingMs = THINKING_MS;
    const ratios: number[] = [];
    for (let round = 0; round < 3; round++) ratios.push((await steps()) / (await plain()));
    thinkingMs = 0;
    const [ours, raw] = [await steps(), await plain()];
    const detail = `the model takes ${THINKING_MS} ms, ${spread(ratios)}; at once: ${micro(ours)} against ${micro(raw)}`;
    return [row("HTTP model step / plain request on a kept connection", median(ratios), "x", 1.2, detail)];
  } catch (error) {
    if (!(error instanceof RunnerError)) throw error;
    return [
      row(
        "HTTP model step / plain request on a kept connection",
        0,
        "x",
        null,
        `not measured: ${error.message}`,
      ),
    ];
  } finally {
    await closed(server);
  }
}

const chunk = (delta: object, finish_reason: string | null) =>
  `data: ${JSON.stringify({ id: "b", object: "chat.completion.chunk", created: 1, model: "bench", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const ANSWER = `${chunk({ content: '{"next_action":{"action":"next"}}' }, null)}${chunk({}, "stop")}data: [DONE]\n\n`;

async function runSteps(folder: string, backend: Backend): Promise<void> {
  const agent = loaded(cycle(STEPS), folder);
  const result = await runLoaded(agent, { cwd: folder, journal: createMemoryJournal(), backend });
  if (!result.success) throw new Error(`The benchmark run went wrong: ${result.reason}`);
}

async function plainRequests(port: number): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const body = JSON.stringify({
    model: "bench",
    stream: true,
    messages: [{ role: "user", content: "Do it." }],
  });
  for (let step = 0; step < STEPS; step++) {
    await new Promise<void>((resolve, reject) => {
      const asked = request(
        { port, host: "127.0.0.1", method: "POST", path: "/v1/chat/completions", agent },
        (answer) => {
          answer.resume().on("end", resolve);
        },
      );
      asked.on("error", reject).end(body);
    });
  }
  agent.destroy();
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
