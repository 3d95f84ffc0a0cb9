/** Fetching for GitHub's client: answers come whole or not at all, and redirects never leave the host. */

/** As `fetch`, except that a broken body is an error of its own and not an empty answer. */
export async function fetchWhole(address: string, init: RequestInit): Promise<Response> {
  const method = init.method ?? "GET";
  let here = new URL(address);
  for (let hop = 0; ; hop += 1) {
    const response = await fetch(here, { ...init, redirect: "manual" });
    const next = nextOf(response, here, method);
    if (next === null || hop === MOST_REDIRECTS) return await readWhole(response);
    await response.body?.cancel();
    here = next;
  }
}

const MOST_REDIRECTS = 5;
const MOST_BYTES = 16 * 1024 * 1024;

/** The token goes with every request, so it is not followed elsewhere; and a write stays the write that it was. */
function nextOf({ status, headers }: Response, here: URL, method: string): URL | null {
  const to = headers.get("location");
  if (status < 300 || status > 399 || status === 304 || to === null) return null;
  if (method !== "GET" && status !== 307 && status !== 308) return null;
  const next = URL.parse(to, here.href);
  return next?.origin === here.origin ? next : null;
}

async function readWhole(response: Response): Promise<Response> {
  const { status, headers, body } = response;
  if (body === null) return response;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MOST_BYTES) return tooLong();
    chunks.push(chunk);
  }
  const isEmpty = status === 204 || status === 205 || status === 304;
  return new Response(isEmpty ? null : Buffer.concat(chunks), { status, headers });
}

function tooLong(): Response {
  const message = `the answer is longer than ${MOST_BYTES} bytes`;
  return Response.json({ message }, { status: 413 });
}
