import { expect, it } from "vitest";
import { forward } from "../../../src/cli/listen/forward.ts";
import { startHandlerServer } from "../../support/handler-server.ts";
import { opened } from "../../support/opened.ts";
import { CEILING_MS } from "../../support/until.ts";

const server = opened(startHandlerServer);

it("inlet listen forwards an event only to the given address, and reports a redirect as the response without following it", async () => {
  server.answers.set("/in", () => ({ status: 307, headers: { location: server.urlOf("/elsewhere") } }));
  const fields = ["specversion", "1.0", "id", "1", "source", "/s", "type", "t", "data", "{}"];
  const topic = "events.o.apps.app.event_received.a.in.t";
  const event = { topic, entryId: "1-0", fields, id: "1", type: "t", hasLineEnds: false };
  const answered = await forward(event, {
    url: server.urlOf("/in"),
    secret: `whsec_${Buffer.alloc(24).toString("base64")}`,
    timeoutMs: CEILING_MS,
    signal: new AbortController().signal,
    onWaiting: (reason) => expect.fail(reason),
  });
  expect(answered).toEqual({ status: 307, latencyMs: expect.any(Number) });
  expect(server.at("/in")).toHaveLength(1);
  expect(server.at("/elsewhere")).toEqual([]);
});
