import type { HandlerAttempt } from "../event/handler.ts";

/** Remedies for an attempt that brought no answer, by its code. */
const REMEDIES: Readonly<Record<string, string>> = {
  blocked:
    "The handler's address is not public: name its network in INLET_ALLOW_NETWORKS and restart, or give it a public address.",
  unresolved: "The handler's host name cannot be resolved (DNS): correct the url, or publish the name.",
  refused:
    "Nothing accepts a connection at the handler's address: start it, or correct host and port of the url.",
  tls: "The handler's TLS certificate is not to be trusted: renew it, serve the whole chain, and let its names include the url's host.",
  timeout:
    "The handler gave no answer within `timeoutMs`: answer 2xx first and do the work afterwards, or subscribe with a longer one.",
  reset:
    "The connection broke before the handler's answer was whole: see its own log, and that of a proxy before it.",
  redirects: "The handler redirects, which is not followed: subscribe with the address that it redirects to.",
  tooLarge: "The handler's answer is too large: answer without a body.",
  protocol: "The handler's answer is not valid HTTP: the url may name a port that speaks something else.",
  needsReauth: "The grant of the handler's connection is dead: authorize the connection anew.",
  unavailable: "The credentials of the handler's connection cannot be read just now: it is tried again.",
  internal: "A fault of Inlet: its log has the cause.",
};

/** The same for an answer that is not 2xx; the first that fits. */
const OF_STATUS: readonly (readonly [fits: (status: number) => boolean, remedy: string])[] = [
  [
    (status) => status === 401 || status === 403,
    "correct the connection's credentials, or how it checks the signature.",
  ],
  [(status) => status === 404 || status === 405, "correct the url, it takes no POST there."],
  [(status) => status === 410, "it is gone for good, and the subscription is paused."],
  [(status) => status === 413, "let it take larger bodies."],
  [(status) => status === 429, "it is asked too often; lower `concurrency`, or let it take more."],
  [(status) => status < 400, "subscribe with the address that answers 2xx itself."],
  [(status) => status < 500, "it refuses the event; see its own log."],
  [() => true, "it fails; see its own log."],
];

/** Why a handler did not take an event, and what to do about it, for a person. */
export function describeFailure({ status, code }: Pick<HandlerAttempt, "status" | "code">): string {
  if (status === null) return REMEDIES[code] ?? `The handler cannot be called (${code}).`;
  const [, remedy] = OF_STATUS.find(([fits]) => fits(status)) ?? ["", ""];
  return `The handler answered ${status}: ${remedy}`;
}
