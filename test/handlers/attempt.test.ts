import { expect, it } from "vitest";
import type { HandledSubscription } from "../../src/data/subscriptions/handlers.ts";
import { createAttempt } from "../../src/handlers/attempt.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { opened } from "../support/opened.ts";
import { CEILING_MS } from "../support/until.ts";

const server = opened(startHandlerServer);
const outbound = opened(() => createOutbound({ allowNetworks: ["127.0.0.0/8"] }));

const event = {
  topic: "events.o.apps.app.event_received.a.in.t",
  entryId: "1-0",
  fields: ["specversion", "1.0", "id", "1", "source", "/s", "type", "t", "data", "{}"],
};

it("a delivery attempt succeeds only with a 2xx response, follows no redirects, and reports a 410 response as gone", async () => {
  const attempt = createAttempt({
    outbound,
    credentialsOf: () => {
      throw new Error("this handler has no connection");
    },
    clock: Date.now,
    createAgentEvent: () => {
      throw new Error("this subscription belongs to no agent");
    },
  });
  const results: Record<string, string> = {};
  for (const status of [200, 202, 204, 299, 300, 301, 302, 304, 307, 400, 404, 410, 429, 500]) {
    const headers = { location: server.urlOf("/elsewhere") };
    server.answers.set("/in", () => ({ status, headers }));
    const subscription: HandledSubscription = {
      id: "sub_1",
      organizationId: "org_1",
      appId: "app_1",
      state: "active",
      isOfSystem: false,
      agent: undefined,
      secret: `whsec_${Buffer.alloc(24).toString("base64")}`,
      handler: {
        url: server.urlOf("/in"),
        connectionId: null,
        timeoutMs: CEILING_MS,
        concurrency: 1,
        ordered: false,
      },
    };
    const result = await attempt(subscription, [event], { signal: new AbortController().signal });
    const isRedirect = [301, 302, 307].includes(status);
    expect(result.attempt).toMatchObject(isRedirect ? { code: "redirects", status: null } : { status });
    results[status] = result.kind === "refused" && result.isGone ? "gone" : result.kind;
  }
  expect(results).toEqual({
    200: "taken",
    202: "taken",
    204: "taken",
    299: "taken",
    300: "refused",
    301: "refused",
    302: "refused",
    304: "refused",
    307: "refused",
    400: "refused",
    404: "refused",
    410: "gone",
    429: "refused",
    500: "refused",
  });
  expect(server.at("/elsewhere")).toEqual([]);
});
