/**
 * What runs in the process of a module host: a text and not a file, so that it is there however this program is packed.
 * It is started with the module's path and, where there is one, the text of a function over the module's exports.
 */

/** Arguments are read-only unless the call says otherwise; what comes back is JSON, or the call has failed. */
export const CHILD_SOURCE = String.raw`
import { Socket } from "node:net";
import { relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const { file, adapter, mostResult } = JSON.parse(process.argv[1]);
// Requests and answers, a line each.
const line = new Socket({ fd: 3, readable: true, writable: true });
const send = (message) => void line.write(JSON.stringify(message) + "\n");

// The process that started us is gone: nothing of us stays, and nothing that the module started.
const leave = () => {
  try { process.kill(-process.pid, "SIGKILL"); } catch {}
  process.exit();
};
line.on("error", leave).on("close", leave);

const loading = import(pathToFileURL(file).href)
  .then((module) => ({ root: adapter === null ? module : (0, eval)(adapter)(module) }))
  .catch((error) => ({ broken: shownPath(file) + ": " + wordsOf(error) }));

let rest = "";
line.setEncoding("utf8").on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  for (const each of lines) {
    const request = JSON.parse(each);
    answer(request).then((result) => send({ id: request.id, result }));
  }
});

async function answer({ path, args, mutable }) {
  const { root, broken } = await loading;
  if (broken !== undefined) return { kind: "threw", code: "MODULE_BROKEN", message: broken };
  let owner, found = root;
  for (const name of path) [owner, found] = [found, member(found, name)];
  if (typeof found !== "function") return { kind: "absent" };
  let value;
  try {
    value = await found.apply(owner, mutable ? args : args.map(readOnly));
  } catch (error) {
    const code = typeof error?.code === "string" ? error.code : "HOOK_THREW";
    return { kind: "threw", code, message: wordsOf(error) };
  }
  try {
    const json = toJson(mutable ? { value: value ?? null, changed: args[0] ?? null } : value ?? null);
    if (json.length > mostResult) throw new Error("it is longer than " + mostResult + " characters");
    return { kind: "gave", json };
  } catch (error) {
    const message = "The result of " + path.join(".") + " is not JSON: " + error.message;
    return { kind: "threw", code: "HOOK_RESULT_INVALID", message: message.slice(0, 4000) };
  }
}

/** What an error says, and the first place in a file that its stack names. */
function wordsOf(error) {
  let message = "an error that cannot be read";
  try {
    message = String(error instanceof Error ? error.message : error).slice(0, 4000);
    return message + placeOf(error);
  } catch {
    return message;
  }
}

function placeOf(error) {
  const stack = error instanceof Error && typeof error.stack === "string" ? error.stack : "";
  const found = /(file:\/\/[^\s()]+?):(\d+):(\d+)\)?$/m.exec(stack.slice(0, 20000));
  if (found === null) return "";
  return " (" + shownPath(fileURLToPath(found[1])).slice(0, 500) + ":" + found[2] + ":" + found[3] + ")";
}

function shownPath(path) {
  const way = relative(process.cwd(), path);
  return way.startsWith("..") ? path : way;
}

/** A member of the object or of its class, but not what every object has. */
function member(owner, name) {
  for (let at = owner; at != null && at !== Object.prototype && at !== Function.prototype; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, name)) return owner[name];
  }
}

function readOnly(value) {
  if (typeof value !== "object" || value === null) return value;
  return new Proxy(value, {
    get: (target, name) => readOnly(Reflect.get(target, name)),
    getOwnPropertyDescriptor: (target, name) => {
      const found = Reflect.getOwnPropertyDescriptor(target, name);
      return found && { ...found, value: readOnly(found.value) };
    },
    set: forbid, deleteProperty: forbid, defineProperty: forbid, setPrototypeOf: forbid, preventExtensions: forbid,
  });
}

function forbid(_target, name) {
  const what = typeof name === "string" ? JSON.stringify(name) : "this";
  throw Object.assign(new Error("Nothing may be changed here: " + what), { code: "ContextMutationForbidden" });
}

/** A member without a value is left out, as JSON does; anything else that JSON would change without a word is refused. */
function toJson(value) {
  return JSON.stringify(value, (key, member) => {
    const isOdd = typeof member === "function" || typeof member === "symbol" || Number.isNaN(member) || Math.abs(member) === Infinity;
    const prototype = typeof member === "object" && member !== null ? Object.getPrototypeOf(member) : null;
    const isPlain = prototype === null || prototype === Object.prototype || prototype === Array.prototype;
    if (isOdd || !isPlain) throw new Error(JSON.stringify(key) + " is " + (isPlain ? String(member) : prototype.constructor?.name));
    return member;
  });
}
`;
