import { getLocal, type Mockttp } from "mockttp";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { OutboundLimits, OutboundRequest } from "../../src/net/outbound.ts";
import { opened } from "../support/opened.ts";

const { signal } = new AbortController();

/** Starts two servers and an outbound client that may call them. */
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

/** Starts a server for all tests of the file. Its rules are removed before each test. */
function startedServer(): Mockttp {
  const server = getLocal();
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  beforeEach(() => server.reset());
  return server;
}
