import { describe, expect, it } from "vitest";
import { type Credentials, NeedsReauthError, OriginNotAllowedError } from "../../../src/net/credentials.ts";
import { type Answer, json, status } from "./answer-server.ts";
import { openedPolls, rows } from "./poll-support.ts";

const { rigOf, server } = openedPolls();

describe("credentials of a polling channel", () => {
  const create = (changes: Partial<Credentials> = {}) => {
    let token = 0;
    const credentials: Credentials = {
      authorize: async (request) => {
        const url = new URL(request.url);
        url.searchParams.set("key", "key-secret-1");
        return {
          request: {
            ...request,
            url: url.href,
            headers: { ...request.headers, authorization: `Bearer token-${token}-long` },
          },
          secretHeaders: ["authorization"],
          secretQuery: ["key"],
          generation: token,
        };
      },
      renew: async ({ generation }) => {
        token = (generation ?? 0) + 1;
        return true;
      },
      ...changes,
    };
    return credentials;
  };

  it("are renewed once in a poll when the server rejects them", async () => {
    server.answers = [status(401), json(rows(1))];
    expect(await rigOf({}, { credentials: create() }).poll()).toEqual({ kind: "done" });
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-0-long",
      "Bearer token-1-long",
    ]);
    const rejected = {
      kind: "failed",
      code: "http_401",
      isRejection: true,
      stateIfPersistent: "needsReauth",
    };
    server.answers = [status(401)];
    expect(await rigOf({}, { credentials: create() }).poll()).toMatchObject(rejected);
    expect(server.requests).toHaveLength(4);
    const fixed = create({ renew: async () => false });
    expect(await rigOf({}, { credentials: fixed }).poll()).toMatchObject(rejected);
    expect(server.requests).toHaveLength(5);
  });

  it("end the poll with needsReauth if their OAuth grant is no longer valid", async () => {
    const dead = async () => Promise.reject(new NeedsReauthError("the grant is dead"));
    expect(await rigOf({}, { credentials: create({ authorize: dead }) }).poll()).toEqual({
      kind: "needsReauth",
      message: "the grant is dead",
    });
    const elsewhere = async () => Promise.reject(new OriginNotAllowedError("no"));
    expect(await rigOf({}, { credentials: create({ authorize: elsewhere }) }).poll()).toMatchObject({
      kind: "broken",
      code: "origin",
    });
  });

  it("do not appear in deliveries, cursors or dry runs, even if the server's response repeats them", async () => {
    const discriminator = { by: "token", path: "$.delta", as: "url" } as const;
    const config = { discriminator, pagination: { by: "linkHeader" } as const };
    const echo: Answer = (request, response) => {
      const self = `${server.origin}${request.url}`;
      const next = request.url?.includes("page=2") ? {} : { link: `<${self}&page=2>; rel="next"` };
      const page = {
        ...rows(server.requests.length),
        self,
        seen: request.headers.authorization,
        delta: `${self}&delta=1`,
      };
      json(page, { ...next, "x-echo": self, "set-cookie": "a=b" })(request, response);
    };
    server.answers = [echo];
    const rig = rigOf(config, { credentials: create() });
    const dry = await rig.dryRun();
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.log).toHaveLength(2);
    const kept = JSON.stringify([
      dry,
      rig.cursor,
      rig.deliveries.map(({ body, headers }) => [String(body), headers]),
    ]);
    expect(kept).not.toMatch(/secret|token-0/);
    expect(rig.deliveries[0]?.headers).not.toHaveProperty("set-cookie");
    expect(dry.request.headers.authorization).toBe("***");
    expect(server.requests.every(({ url }) => url.match(/key=key-secret-1/g)?.length === 1)).toBe(true);
  });
});
