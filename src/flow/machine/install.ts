/** The command that installs an optional package where Lockstep looks for it. */

/**
 * `from`: the address of a module of Lockstep. `folder`: where the user wants optional packages to be looked for.
 *
 *     installCommand("ws@8", "file:///usr/lib/node_modules/lockstep/dist/x.js"); // npm install ws@8 --global
 */
export function installCommand(spec: string, from: string, folder?: string): string {
  if (folder !== undefined) return `npm install ${spec} --prefix ${word(folder)}`;
  const path = decodeURIComponent(new URL(from).pathname);
  if (/\/(?:lib|npm)\/node_modules\/lockstep\//.test(path)) return `npm install ${spec} --global`;
  const [, project] = /^(.+?)\/node_modules\/lockstep\//.exec(path) ?? [];
  // In a clone there is no such folder: it is the project.
  const place = project ?? path.replace(/\/(?:src|dist)\/.*$/, "");
  return `npm install ${spec} --prefix ${word(place)}`;
}

function word(path: string): string {
  return /^[\w/.:@%+=-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}
