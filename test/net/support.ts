import { getLocal, type Mockttp } from "mockttp";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { OutboundLimits, OutboundRequest } from "../../src/net/outbound.ts";
import { opened } from "../support/opened.ts";

const { signal } = new AbortController();

/** Two servers, and the calls of a gateway to them. */
export function openedOutbound() {
  const [server, other] = [startedServer(), startedServer()];
  const outbound = opened(() => createOutbound({ allowNetworks: ["127.0.0.0/8", "::1/128"] }));
  const call = (path: string, more: Partial<OutboundRequest> = {}, limits: OutboundLimits = {}) =>
    outbound.request(
      { method: "GET", url: server.urlFor(path), headers: {}, ...more },
      { signal, ...limits },
    );
  return { server, other, outbound, call };
}

/** Without rules at the beginning of each test. */
function startedServer(): Mockttp {
  const server = getLocal();
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  beforeEach(() => server.reset());
  return server;
}
