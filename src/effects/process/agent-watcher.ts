/** What the watcher over coding agents runs: texts and not files, so that they are there however this program is packed. */

/**
 * `$0` is Node, `$1` the script below, `$2` the mark, `$3` the folder. It reads words, one on a line: `+1234` a process
 * group that was started, `-1234` one that has ended, `keep:folder` a folder of which only that entry stays, `done` that
 * nothing is left to do.
 */
export const AGENT_WATCHER = `
trap '' HUP INT TERM
left=" "
while IFS= read -r word; do
  case $word in
    done) exit 0 ;;
    -*)
      ended=" +\${word#-} "
      case $left in
        *"$ended"*) left="\${left%%"$ended"*} \${left#*"$ended"}" ;;
      esac ;;
    *) left="$left$word " ;;
  esac
done
exec "$0" --input-type=module --eval "$1" "$2" "$3" "$left"
`;

/** Its last argument is what is left of the words. */
export const WATCHER_SCRIPT = `
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const [mark, folder, left] = process.argv.slice(-3);
const words = left.split(" ").filter(Boolean);
const groups = words.filter((word) => /^[+]\\d+$/.test(word)).map((word) => word.slice(1));

function read(pid, file) {
  try {
    return readFileSync("/proc/" + pid + "/" + file, "latin1");
  } catch {
    return "";
  }
}

function about(pid) {
  const stat = read(pid, "stat");
  const [state, parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, parent, group, lives: stat !== "" && state !== "Z" && state !== "X" };
}

function found() {
  if (process.platform !== "linux") return groups.map((id) => "-" + id);
  const all = readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).map(about);
  const ours = new Set();
  for (const { pid, group } of all) if (groups.includes(group) || read(pid, "environ").includes(mark)) ours.add(pid);
  for (let size = -1; size !== ours.size; ) {
    size = ours.size;
    for (const { pid, parent } of all) if (ours.has(parent)) ours.add(pid);
  }
  ours.delete(String(process.pid));
  return all.filter(({ pid, lives }) => lives && ours.has(pid)).map(({ pid }) => pid);
}

/** Children whose parent ends first are not found by it any more. */
const known = new Set();

function send(signal) {
  for (const id of found()) known.add(id);
  let some = false;
  for (const id of known) {
    try {
      process.kill(Number(id), signal);
      some = !(Number(id) > 0) || about(id).lives || some;
    } catch {
      known.delete(id);
    }
  }
  return some;
}

send("SIGTERM");
for (let round = 0; round < 25 && send(0); round += 1) await sleep(20);
for (let round = 0; round < 200 && send("SIGKILL"); round += 1) await sleep(20);
rmSync(folder, { recursive: true, force: true });
for (const word of words) {
  const [keep, home] = word.split(":");
  if (home === undefined) continue;
  try {
    const path = decodeURIComponent(home);
    for (const entry of readdirSync(path)) if (entry !== keep) rmSync(join(path, entry), { recursive: true, force: true });
  } catch {}
}
`;
