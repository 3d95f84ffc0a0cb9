/** Whether the environment asks for traces. Apart from what makes them, which is loaded only then. */

export function isTraced(env: NodeJS.ProcessEnv): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none") return false;
  return Boolean(env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) || Boolean(env.OTEL_EXPORTER_OTLP_ENDPOINT);
}
