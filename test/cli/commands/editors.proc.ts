/** What an editor makes of the files that `init` writes in a project without the package: real language servers, offline. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { needs } from "../../needs.ts";
import { until } from "../../until.ts";
import { createWorld } from "../world.ts";

const packages = process.env.LOCKSTEP_PACKAGES ?? "";
const has = (name: string) =>
  needs(existsSync(join(packages, "node_modules", name)), `${name} (npm run test:all)`);

/** What both servers say of a text: its faults, and what they complete at the mark `|`. */
type Said = { readonly faults: readonly string[]; readonly completed: readonly string[] };

type Item = { readonly label: string };
type Json = {
  readonly TextDocument: {
    readonly create: (uri: string, language: string, version: number, text: string) => Text;
  };
  readonly getLanguageService: (options: object) => {
    readonly parseJSONDocument: (text: Text) => object;
    readonly doValidation: (text: Text, parsed: object) => Promise<readonly { readonly message: string }[]>;
    readonly doComplete: (
      text: Text,
      at: object,
      parsed: object,
    ) => Promise<{ readonly items: readonly Item[] }>;
  };
};
type Text = { readonly positionAt: (offset: number) => object };

async function askJson(file: string, text: string, at: number): Promise<Said> {
  const json = createRequire(join(packages, "x.js"))("vscode-json-languageservice") as Json;
  const service = json.getLanguageService({
    schemaRequestService: (uri: string) => {
      assert.ok(uri.startsWith("file:"), `nothing is fetched: ${uri}`);
      return Promise.resolve(readFileSync(fileURLToPath(uri), "utf8"));
    },
    workspaceContext: { resolveRelativePath: (path: string, from: string) => new URL(path, from).href },
  });
  const document = json.TextDocument.create(pathToFileURL(file).href, "json", 1, text);
  const parsed = service.parseJSONDocument(document);
  const faults = await service.doValidation(document, parsed);
  const { items } = await service.doComplete(document, document.positionAt(at), parsed);
  return { faults: faults.map(({ message }) => message), completed: items.map(({ label }) => label) };
}

type Heard = {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
  readonly params?: unknown;
};

/** A question to `yaml-language-server --stdio`, which reads the comment in the first line by itself. */
async function askYaml(file: string, text: string, at: number): Promise<Said> {
  const bin = join(packages, "node_modules/yaml-language-server/bin/yaml-language-server");
  const server = spawn(process.execPath, [bin, "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
  const uri = pathToFileURL(file).href;
  const heard: Heard[] = [];
  const send = (message: object) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  let rest = Buffer.alloc(0);
  server.stdout.on("data", (part: Buffer) => {
    rest = Buffer.concat([rest, part]);
    for (;;) {
      const end = rest.indexOf("\r\n\r\n");
      const length = Number(/Content-Length: (\d+)/i.exec(rest.subarray(0, end + 1).toString())?.[1]);
      if (end === -1 || rest.length < end + 4 + length) return;
      const message = JSON.parse(rest.subarray(end + 4, end + 4 + length).toString()) as Heard;
      rest = rest.subarray(end + 4 + length);
      heard.push(message);
      // The server asks for settings: there are none.
      if (message.method !== undefined && message.id !== undefined)
        send({
          id: message.id,
          result: message.method === "workspace/configuration" ? [{}, {}, {}, {}, {}] : null,
        });
    }
  });
  const first = async (is: (message: Heard) => boolean, what: string) => {
    await until(() => heard.some(is), what);
    return heard.findLast(is)!;
  };
  const answer = async (id: number) =>
    (await first((one) => one.id === id && one.method === undefined, `answer ${id}`)).result;
  try {
    send({
      id: 1,
      method: "initialize",
      params: { processId: process.pid, rootUri: null, capabilities: {} },
    });
    await answer(1);
    send({ method: "initialized", params: {} });
    const yaml = { validate: true, completion: true, schemaStore: { enable: false } };
    send({ method: "workspace/didChangeConfiguration", params: { settings: { yaml } } });
    send({
      method: "textDocument/didOpen",
      params: { textDocument: { uri, languageId: "yaml", version: 1, text } },
    });
    const before = text.slice(0, at).split("\n");
    const position = { line: before.length - 1, character: before.at(-1)!.length };
    send({ id: 2, method: "textDocument/completion", params: { textDocument: { uri }, position } });
    const { items } = (await answer(2)) as { readonly items: readonly Item[] };
    const found = await first(({ method }) => method === "textDocument/publishDiagnostics", "diagnostics");
    const { diagnostics } = found.params as { readonly diagnostics: readonly { readonly message: string }[] };
    return { faults: diagnostics.map(({ message }) => message), completed: items.map(({ label }) => label) };
  } finally {
    server.kill();
    await once(server, "exit");
  }
}

/** A file that `init` writes, what somebody types into it (`|`: where the editor completes), what is offered, and the fault. */
const TYPED = [
  [
    "vscode-json-languageservice",
    [],
    "agent.json",
    '"topic": {',
    '"topic": { "requird": true, "|": 1,',
    "default",
    /requird/,
  ],
  [
    "vscode-json-languageservice",
    [],
    "steps_registry.json",
    '"version"',
    '"entrystep": "", "|": 1, "version"',
    "entryStep",
    /entrystep/,
  ],
  [
    "yaml-language-server",
    ["--stages"],
    "machine.yaml",
    "entry:",
    "entri: x\n|\nentry:",
    "joinRule",
    /entri/,
  ],
  [
    "yaml-language-server",
    [],
    "script.yaml",
    "  - step: initial.note",
    "  - stepp: x\n    |\n    step: initial.note",
    "unseen",
    /stepp/,
  ],
] as const;

for (const [server, flags, file, place, typed, offered, fault] of TYPED)
  test(
    `${file}: ${server} finds the schema, completes a key and marks a misspelled one`,
    { ...has(server) },
    async () => {
      using world = createWorld();
      assert.equal((await world.lockstep(["init", "notes", ...flags])).code, 0);
      const path = join(world.root, ".agent/notes", file);
      const ask = server === "yaml-language-server" ? askYaml : askJson;
      const text = readFileSync(path, "utf8");
      assert.ok(text.includes(place), text);
      assert.deepEqual((await ask(path, text, 0)).faults, []);
      const changed = text.replace(place, typed);
      const at = changed.indexOf("|", changed.indexOf(typed.split("|")[0]!));
      const said = await ask(path, changed.slice(0, at) + changed.slice(at + 1), at);
      assert.ok(said.completed.includes(offered), said.completed.join());
      assert.ok(
        said.faults.some((message) => fault.test(message)),
        said.faults.join("\n"),
      );
    },
  );
