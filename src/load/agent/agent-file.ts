/** agent.json: opened, and made into the settings of a flow. The same beside a registry and beside stages. */
import type { Files } from "../../flow/files.ts";
import { isObject, readPath, type JsonObject, type Path } from "../../flow/json.ts";
import {
  FINALIZE,
  PLACE,
  GITHUB,
  LOGGING,
  SANDBOX,
  WORKTREE,
  type Actions,
  type Settings,
} from "../../flow/settings.ts";
import type { Code } from "../codes.ts";
import type { Finding } from "../rules/rule.ts";
import {
  brokenJson,
  isWritten,
  readDocument,
  repeatedKeys,
  unreadable,
  type Document,
} from "../text/document.ts";
import { recordOf } from "../text/record.ts";
import { escapesProject, joinPath, parentFolder } from "../text/paths.ts";
import { isWriting, type AgentSource } from "./agent-shape.ts";
import { DEFAULTS } from "./defaults.ts";
import { mcpSetting, serversOf, type Declared } from "./mcp.ts";
import { peopleOf } from "./people.ts";

/** The file as a document that holds an object, or null with the reason among the findings. */
export function open(files: Files, file: string, about: About, findings: Finding[]): Document | null {
  const read = readDocument(files, file);
  const { document } = read;
  const refuse = (finding: Finding) => {
    findings.push(finding);
    return null;
  };
  switch (read.kind) {
    case "missing": {
      const folder = files.read(parentFolder(file));
      // A folder that is a link out of the project is there, and is not looked into.
      if (folder.kind === "refused")
        return refuse({
          ...unreadable(parentFolder(file), folder.why),
          code: about.unreadable,
          fix: COPY_IT,
        });
      const fix = `Create ${file}, or ${about.otherwise}.`;
      return refuse({ code: about.missing, document, pointer: "", message: about.says, fix });
    }
    case "unreadable":
      return refuse({ ...unreadable(file, read.why), code: about.unreadable });
    case "broken":
      return refuse(brokenJson(document, read.what));
    case "read": {
      findings.push(...repeatedKeys(document));
      if (isObject(document.value)) return document;
      const message = `${file} must contain a JSON object.`;
      const fix = "Write a JSON object in braces.";
      return refuse({ code: about.noObject, document, pointer: "", message, fix });
    }
  }
}

const COPY_IT =
  "Copy what the link leads to into the project: only links to places in the project are followed.";

/** The words for a file that cannot be opened. */
export type About = {
  readonly missing: Code;
  readonly unreadable: Code;
  readonly noObject: Code;
  readonly says: string;
  readonly otherwise: string;
};

export function aboutAgent(name: string, folder: string): About {
  return {
    missing: "AC-SERVICE-001",
    unreadable: "AC-SERVICE-003",
    noObject: "AC-VALID-001",
    says: `There is no agent "${name}": looked in ${folder}, and there is no ${folder}/agent.json and no ${folder}/stages.`,
    otherwise: "start from the root of the project that has it",
  };
}

export function aboutRegistry(file: string): About {
  return {
    missing: "AC-SERVICE-004",
    unreadable: "AC-SERVICE-004",
    noObject: "SR-LOAD-001",
    says: `There is no steps registry ${file}.`,
    otherwise: "name the registry in runner.flow.prompts.registry",
  };
}

/** `more`: servers of tools that are declared elsewhere. */
export function settingsOf(
  { runner }: AgentSource,
  document: Document,
  actions: Actions,
  more: readonly Declared[] = [],
): Settings {
  const { boundaries, integrations, execution, logging, flow, verdict } = runner;
  const { github } = integrations;
  const { enabled, labels: _labels, ...onGitHub } = recordOf(GITHUB, github);
  const sandbox = recordOf(SANDBOX, boundaries.sandbox);
  const asked = (...path: Path) => isWritten(document, ["runner", ...path]) && { asked: true as const };
  return {
    verdict: { type: verdict.type, config: writtenConfig(document) },
    boundaries: {
      allowedTools: boundaries.allowedTools,
      permissionMode: boundaries.permissionMode ?? DEFAULTS.permissionMode,
      sandbox: {
        ...asked("boundaries", "sandbox"),
        ...sandbox,
        network: { ...asked("boundaries", "sandbox", "network"), ...sandbox.network },
      },
    },
    github: {
      enabled,
      ...(isWriting(document) && { asked: true as const }),
      labels: Object.fromEntries(github.labels.rest),
      completion: { ...github.labels.completion },
      ...onGitHub,
    },
    actions,
    worktree: recordOf(WORKTREE, execution.worktree),
    finalize: recordOf(FINALIZE, execution.finalize),
    logging: { ...recordOf(LOGGING, logging), enabled: isLogged(logging.directory, document) },
    inspectSchemas: flow.schemas.inspection,
    autoResponse: flow.askUserAutoResponse,
    ...placeSetting(execution.place),
    ...peopleOf(runner),
    ...mcpSetting([serversOf({ runner }, document), ...more]),
  };
}

function placeSetting(place: AgentSource["runner"]["execution"]["place"]): Pick<Settings, "place"> {
  const recorded = recordOf(PLACE, place);
  return Object.keys(recorded).length === 0 ? {} : { place: recorded };
}

/** If the group is set, log files are written, always below the project. */
function isLogged(directory: string, document: Document): boolean {
  return isWritten(document, ["runner", "logging"]) && !escapesProject(joinPath("", directory));
}

function writtenConfig({ value }: Document): JsonObject {
  const config = readPath(value, ["runner", "verdict", "config"]);
  return isObject(config) ? config : {};
}
