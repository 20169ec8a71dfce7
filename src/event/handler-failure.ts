import type { HandlerAttempt } from "./handler.ts";

/** Causes and suggested fixes by error code. */
const REMEDIES: Readonly<Record<string, string>> = {
  blocked:
    "The host of `handler.url` leads to an address that is not public. Add its network to INLET_ALLOW_NETWORKS and restart Inlet, or use a public address.",
  unresolved: "The handler's host name cannot be resolved. Correct the url, or add a DNS record.",
  refused:
    "The handler's address refuses connections. Start the handler, or correct the host and port of the url.",
  tls: "The handler's TLS certificate is not trusted. Renew it, serve the full chain, and check that it includes the host of the url.",
  timeout:
    "The handler did not respond within `timeoutMs`. Respond 2xx first and do the work afterwards, or increase `timeoutMs`.",
  reset:
    "The connection closed before the handler's response was complete. Check the logs of the handler and of its proxy.",
  redirects:
    "The handler responded with a redirect, which Inlet does not follow. Set the url to the target of the redirect.",
  tooLarge: "The handler's response is too large. Respond without a body.",
  protocol: "The handler's response is not valid HTTP. Check whether the url has the port of an HTTP server.",
  filterFailed:
    "The `when` of the subscription could not be evaluated on an event, which is now a dead letter. Subscribe again with a simpler `when`.",
  rejectedInBatch:
    "The handler's response to a batch lists the event in `failed`. Check the log of the handler.",
  batchResponse:
    'The handler\'s response to a batch lists other events in `failed` than those of the batch. Respond with {"failed": [{"source": "…", "id": "…"}]}.',
  needsReauth: "The grant of the handler's connection is no longer valid. Authorize the connection again.",
  unavailable:
    "The credentials of the handler's connection are temporarily unavailable. Inlet retries the delivery.",
  internal: "Inlet had an internal error. Its log contains the cause.",
};

/** Suggested fixes for error responses. The first entry whose condition fits the status applies. */
const OF_STATUS: readonly (readonly [fits: (status: number) => boolean, remedy: string])[] = [
  [
    (status) => status === 401 || status === 403,
    "Correct the connection's credentials, or the signature check of the handler.",
  ],
  [(status) => status === 404 || status === 405, "The url does not accept POST. Correct it."],
  [(status) => status === 410, "The handler wants no more events, so Inlet paused the subscription."],
  [(status) => status === 413, "Allow larger request bodies in the handler."],
  [
    (status) => status === 429,
    "The handler gets too many requests. Lower `concurrency`, or raise the handler's limit.",
  ],
  [(status) => status < 400, "Set the url to the address that responds 2xx itself."],
  [(status) => status < 500, "The handler rejects the event. Check its log."],
  [() => true, "The handler has an error. Check its log."],
];

export function describeFailure({ status, code }: Pick<HandlerAttempt, "status" | "code">): string {
  const remedyOfCode = REMEDIES[code];
  if (remedyOfCode !== undefined) return remedyOfCode;
  if (status === null) return `The call to the handler failed (${code}).`;
  const [, remedy] = OF_STATUS.find(([fits]) => fits(status)) ?? ["", ""];
  return `The handler responded ${status}. ${remedy}`;
}
