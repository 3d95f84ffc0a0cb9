/**
 * The stand-in of GitHub, whose answers and whose visitors' requests are held against GitHub's own description. In its
 * environment acts on GitHub are trusted.
 */
import assert from "node:assert/strict";
import type { Json } from "../../src/flow/json.ts";
import type { ServedAnswer } from "../../src/testing/github/answers.ts";
import { serveGithub, type Asked, type GithubStandIn } from "../../src/testing/github/stand-in.ts";
import { complete, misfit, operationOf } from "./described.ts";

export type {
  Asked,
  ServedFault as Fault,
  GithubStandIn as StandIn,
  When,
} from "../../src/testing/github/stand-in.ts";

/** `close` fails if anything did not fit GitHub's description. */
export async function openStandIn(owner = "octo", repo = "demo", token?: string): Promise<GithubStandIn> {
  const violations: string[] = [];

  function hold(asked: Asked, { status, data }: ServedAnswer): Json {
    const known = operationOf(asked.method, asked.path);
    if (asked.path === "/graphql" || status === 401) return data;
    const blame = (what: string) => violations.push(`${asked.method} ${asked.path}: ${what}`);
    if (known === null) {
      blame("is not among the operations in test/fixtures/github-openapi.json");
      return data;
    }
    const { body, query, answers } = known.operation;
    for (const name of Object.keys(asked.query)) if (!query.includes(name)) blame(`takes no ?${name}`);
    const wrong = body === null ? null : misfit(asked.body, body);
    if (wrong !== null && status < 400) blame(`was asked with a body that does not fit: ${wrong}`);
    const schema = answers[String(status)];
    if (schema === undefined) blame(`never answers ${status}`);
    if (schema === undefined || schema === null) return data;
    const whole = complete(schema, data);
    const misfits = misfit(whole, schema);
    if (misfits !== null) blame(`was answered ${status} with what does not fit: ${misfits}`);
    return whole;
  }

  const stand = await serveGithub({ owner, repo, ...(token !== undefined && { token }), hold });
  const { close } = stand;
  return Object.assign(stand, {
    env: { ...stand.env, LOCKSTEP_TRUST: "all" },
    close: async () => {
      await close();
      assert.deepEqual(violations, []);
    },
  });
}
