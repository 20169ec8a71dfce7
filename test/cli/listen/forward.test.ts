import { expect, it } from "vitest";
import { forward } from "../../../src/cli/listen/forward.ts";
import { startHandlerServer } from "../../support/handler-server.ts";
import { opened } from "../../support/opened.ts";
import { CEILING_MS } from "../../support/until.ts";

const server = opened(startHandlerServer);

const fields = ["specversion", "1.0", "id", "1", "source", "/s", "type", "t", "data", "{}"];
const topic = "events.o.apps.app.event_received.a.in.t";
const event = { topic, entryId: "1-0", fields, id: "1", type: "t", hasLineEnds: false };

/** Forwards the event to a path of the test server. */
const forwardTo = (path: string, timeoutMs: number) =>
  forward(event, {
    url: server.urlOf(path),
    secret: `whsec_${Buffer.alloc(24).toString("base64")}`,
    timeoutMs,
    signal: new AbortController().signal,
    onWaiting: (reason) => expect.fail(reason),
  });

it("inlet listen forwards an event only to the given address, and reports a redirect as the response without following it", async () => {
  server.answers.set("/in", () => ({ status: 307, headers: { location: server.urlOf("/elsewhere") } }));
  const answered = await forwardTo("/in", CEILING_MS);
  expect(answered).toEqual({ status: 307, latencyMs: expect.any(Number) });
  expect(server.at("/in")).toHaveLength(1);
  expect(server.at("/elsewhere")).toEqual([]);
});

it("the timeout of inlet listen ends a request without a response, and does not count time in which the process was suspended", async () => {
  server.answers.set("/silent", () => "hang");
  expect(await forwardTo("/silent", 10)).toEqual({ status: undefined, latencyMs: expect.any(Number) });

  const timeoutMs = 3_000;
  const answered = forwardTo("/later", timeoutMs);
  // Timers that became due while the thread was blocked run late and at once, as after a suspension.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, timeoutMs + 100);
  expect(await answered).toEqual({ status: 200, latencyMs: expect.any(Number) });
});
