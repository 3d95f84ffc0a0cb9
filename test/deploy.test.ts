/** The files of deploy/: they can be read, and every command, flag and setting in them exists. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { lineOf } from "../src/cli/call.ts";
import { COMMANDS } from "../src/cli/commands.ts";
import { everyFault } from "../src/engine/schema/schema.ts";
import { isObject, type Json, type JsonObject } from "../src/flow/json.ts";

const root = join(import.meta.dirname, "..");
const textOf = (file: string) => readFileSync(join(root, "deploy", file), "utf8");
const manifests = globSync("kubernetes/*.yaml", { cwd: join(root, "deploy") }).toSorted();
const objects = manifests.flatMap((file) =>
  parseAllDocuments(textOf(file)).map((document) => {
    assert.deepEqual(document.errors, [], file);
    return { file, object: document.toJS() as JsonObject };
  }),
);
const compose = parse(textOf("compose.yaml"), { merge: true }) as {
  readonly services: { readonly [name: string]: JsonObject };
};
const docker = textOf("Dockerfile");

/** All lists of words that are given to a container, wherever they stand. */
function linesIn(value: Json | undefined): readonly (readonly string[])[] {
  if (Array.isArray(value)) {
    const words = value as readonly Json[];
    const [first, second] = words;
    if (first === "lockstep" || (first === "fleet" && typeof second === "string"))
      return [words.filter((word) => word !== "lockstep") as readonly string[]];
    return words.flatMap(linesIn);
  }
  return isObject(value) ? Object.values(value).flatMap(linesIn) : [];
}

const listIn = (instruction: string) =>
  JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, "m").exec(docker)?.[1] ?? "[]") as readonly string[];
const valueOf = (line: readonly string[], flag: string) => line[line.indexOf(flag) + 1] ?? "";
const seconds = (text: string) => {
  const [, digits = "", unit = ""] = /^(\d+)([smh])$/.exec(text) ?? [];
  return Number(digits) * ({ s: 1, m: 60, h: 3600 }[unit] ?? Number.NaN);
};

test("every command and flag in deploy/ is one of Lockstep", () => {
  const lines = [...linesIn(compose), ...objects.flatMap(({ object }) => linesIn(object)), listIn("CMD")];
  const named = lines.map((line) => {
    const [first = "", second = ""] = line;
    const command = COMMANDS.find(({ name }) => name === `${first} ${second}`);
    assert.ok(command !== undefined, line.join(" "));
    // Throws for a flag that it does not have, or a value that does not fit.
    lineOf(command, line);
    return command.name;
  });
  assert.deepEqual([...new Set(named)].toSorted(), ["fleet init", "fleet ps", "fleet worker"]);
  assert.equal(
    named.length,
    6,
    "in compose two, in the Job, in the Deployment with its probe, and in the image",
  );
  assert.deepEqual(listIn("ENTRYPOINT"), ["tini", "--", "lockstep"]);
});

test("a worker has the time that it gives its runs to yield, and a minute more", () => {
  const deployment = objects.find(({ object }) => object.kind === "Deployment");
  const spec = JSON.stringify(deployment?.object);
  const line = linesIn(deployment!.object).find(([, verb]) => verb === "worker");
  const grace = Number(/"terminationGracePeriodSeconds":(\d+)/.exec(spec)?.[1]);
  assert.ok(grace >= seconds(valueOf(line!, "--within")) + 60, spec);
  const { worker } = compose.services;
  const [driven] = linesIn(worker);
  assert.ok(seconds(worker?.stop_grace_period as string) >= seconds(valueOf(driven!, "--within")) + 60);
});

test("the settings of the workers are valid, and a scaler counts with them", () => {
  const config = objects.find(({ object }) => object.kind === "ConfigMap")!.object.data as JsonObject;
  const settings = JSON.parse(config["config.json"] as string) as JsonObject;
  const schema = JSON.parse(readFileSync(join(root, "schemas/config.schema.json"), "utf8")) as JsonObject;
  assert.deepEqual(everyFault(schema, settings), []);
  const scaler = JSON.stringify(objects.find(({ object }) => object.kind === "ScaledObject")?.object);
  const { concurrency } = settings.fleet as JsonObject;
  assert.match(scaler, new RegExp(`"targetQueryValue":"${JSON.stringify(concurrency)}"`));
});

test("nothing runs as root, nothing holds a password, and the image has what runs need", () => {
  assert.match(docker, /^USER node$/m);
  for (const name of ["bubblewrap", "git", "ripgrep", "socat", "tini", "openssh-client", "ca-certificates"])
    assert.ok(docker.includes(` ${name} `), name);
  const { peerDependencies = {} } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly peerDependencies?: { readonly [name: string]: string };
  };
  for (const name of ["pg-boss", "@anthropic-ai/sandbox-runtime"])
    assert.ok(docker.includes(` ${name}@${peerDependencies[name]!.replace(/^[~^]/, "")} `), name);
  assert.ok(docker.includes(` pg@${peerDependencies.pg!.replace(/^\^(\d+).*$/, "$1")} `));
  for (const { file, object } of objects.filter(
    ({ object: { kind } }) => kind === "Deployment" || kind === "Job",
  )) {
    const text = JSON.stringify(object);
    for (const part of ['"runAsNonRoot":true', '"allowPrivilegeEscalation":false', '"drop":["ALL"]'])
      assert.ok(text.includes(part), `${file}: ${part}`);
    assert.match(text, /"name":"LOCKSTEP_STATE","valueFrom":\{"secretKeyRef"/);
  }
  for (const file of ["compose.yaml", ...manifests.map((name) => name)])
    assert.doesNotMatch(textOf(file).replaceAll(/^ *#.*$/gm, ""), /:\/\/[^/@\s$]+:[^@\s$]+@/, file);
});
