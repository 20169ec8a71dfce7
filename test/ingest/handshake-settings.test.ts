import { describe, expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";

const server = opened(startHookServer);

describe("the settings of a webhook handshake are rejected, with an error that names the field, if they contain", () => {
  const bare = { title: "x", when: { method: "GET" }, requireVerified: false };
  it.each<[string, object, string]>([
    ["a POST that matches any delivery", { ...bare, when: { method: "POST" } }, "when.all"],
    [
      "a POST matched only by a field that a delivery could have",
      { ...bare, when: { method: "POST", all: [{ in: "body", name: "$.challenge" }] } },
      "when.all",
    ],
    [
      "a POST matched only by a missing header",
      { ...bare, when: { method: "POST", all: [{ in: "header", name: "x", absent: true }] } },
      "when.all",
    ],
    [
      "a condition with two comparisons",
      { ...bare, when: { method: "GET", all: [{ in: "query", name: "x", equals: "a", absent: true }] } },
      "when.all[0]",
    ],
    [
      "an invalid JSON body",
      { ...bare, respond: { contentType: "application/json", body: '{"a":{{query:a}}}' } },
      "respond.body",
    ],
    ["the secret itself in the reply", { ...bare, respond: { body: "{{secret}}" } }, "respond.body"],
    ["an unknown filter", { ...bare, respond: { body: "{{query:a | md6}}" } }, "respond.body"],
    ["a body for status 204", { ...bare, respond: { status: 204, body: "x" } }, "respond.body"],
    [
      "a Content-Type header",
      { ...bare, respond: { headers: { "Content-Type": "text/html" } } },
      "respond.headers.Content-Type",
    ],
    ["a cookie", { ...bare, respond: { headers: { "set-cookie": "a=b" } } }, "respond.headers.set-cookie"],
    ["the content type text/html", { ...bare, respond: { contentType: "text/html" } }, "respond.contentType"],
    [
      "a captured secret together with required verification",
      { ...bare, requireVerified: true, captureSecret: { in: "header", name: "x" } },
      "requireVerified",
    ],
    [
      "a confirmation URL that is called without verification",
      { ...bare, visit: { in: "query", name: "u", pinned: ["https://a.example/x"] } },
      "visit",
    ],
    [
      "a confirmation URL on any host",
      { ...bare, requireVerified: true, visit: { in: "query", name: "u", pinned: ["https://*/x"] } },
      "visit.pinned[0]",
    ],
  ])("%s", async (_, handshake, field) => {
    const channels = [{ uid: "c", kind: "webhook", config: { handshakes: [handshake] } }];
    const { call } = server.spine.api;
    const { status, paths } = await call.expectRejection("POST", "/blueprints", { title: "x", channels });
    expect(status).toBe(400);
    expect(paths).toContain(`channels[0].config.handshakes[0].${field}`);
  });
});
