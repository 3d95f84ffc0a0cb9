/** Traces of a run for OpenTelemetry, as the usual variables of the environment ask for them. */
import { createExporter } from "../../effects/otlp.ts";
import type { Ear, ListenContext } from "./listen.ts";
import { createSpans } from "../../tell/spans.ts";

/** How long the end of a run may wait for the collector. */
const LAST_MS = 2000;

export function createTraces({ env, flow, run }: ListenContext): Ear {
  const spans = createSpans(
    flow,
    run,
    env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT?.toLowerCase() === "true",
  );
  const exporter = createExporter({
    url: endpointOf(env),
    headers: pairs(`${env.OTEL_EXPORTER_OTLP_HEADERS ?? ""},${env.OTEL_EXPORTER_OTLP_TRACES_HEADERS ?? ""}`),
    resource: {
      "service.name": "lockstep",
      ...pairs(env.OTEL_RESOURCE_ATTRIBUTES ?? ""),
      ...(env.OTEL_SERVICE_NAME && { "service.name": env.OTEL_SERVICE_NAME }),
      "telemetry.sdk.name": "lockstep",
      "telemetry.sdk.language": "nodejs",
    },
    trace: run,
  });
  return {
    recall: spans.recall,
    hear: (moment) => exporter.add(spans.hear(moment)),
    close: async () => {
      exporter.add(spans.close());
      return await exporter.close(LAST_MS);
    },
  };
}

/** The one for traces is taken as it is; to the general one the path is added. */
function endpointOf(env: NodeJS.ProcessEnv): string {
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  if (protocol === "grpc") throw new Error("grpc is not supported; use a collector that accepts http/json");
  const exact = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const text = exact || (env.OTEL_EXPORTER_OTLP_ENDPOINT ?? "").replace(/\/*$/, "/v1/traces");
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "http:" && url?.protocol !== "https:")
    throw new Error("the endpoint is not an http or https URL");
  return text;
}

/** `a=1,b=2`, percent-encoded; what is neither is passed over. */
function pairs(text: string): { readonly [name: string]: string } {
  const list = text.split(",").flatMap((part) => {
    const at = part.indexOf("=");
    const name = part.slice(0, Math.max(0, at)).trim();
    return name === "" ? [] : [[name, decoded(part.slice(at + 1).trim())] as const];
  });
  return Object.fromEntries(list);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
