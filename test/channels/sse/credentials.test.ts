import { afterAll, describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { type Credentials, NeedsReauthError, OriginNotAllowedError } from "../../../src/net/credentials.ts";
import { OutboundError } from "../../../src/net/outbound.ts";
import {
  createRun,
  createStreamClient,
  dataOf,
  type Script,
  startRawServer,
  status,
  streamOf,
} from "./support.ts";

const client = createStreamClient();
afterAll(() => client[Symbol.asyncDispose]());

/** Creates credentials with this many token generations. `renew` moves to the next one until the last. */
function tokens(generations: number) {
  let generation = 1;
  const renewals: (number | undefined)[] = [];
  const credentials: Credentials = {
    async authorize(request) {
      const headers = { ...request.headers, authorization: `Bearer t${generation}` };
      return {
        request: { ...request, headers },
        secretHeaders: ["authorization"],
        secretQuery: [],
        generation,
      };
    },
    async renew({ generation: rejected }) {
      renewals.push(rejected);
      if (generation === generations) return false;
      generation += 1;
      return true;
    },
  };
  return { credentials, renewals };
}

const guarded: Script = (call) =>
  call.headers.authorization === "Bearer t2"
    ? streamOf("id: 1\ndata: in\n\n")(call)
    : status("401 Unauthorized", "Content-Length: 0")(call);

async function runWith(script: Script, credentials: Credentials) {
  await using server = await startRawServer(script);
  const run = createRun({ url: server.url }, { credentials, cursor: '{"lastEventId":"0","n":1}' });
  const end = await client.run(run);
  return { run, end, calls: server.calls };
}

describe("an SSE channel with credentials", () => {
  it("sends its credentials, and renews the token once when the server rejects it", async () => {
    const { credentials, renewals } = tokens(2);
    const { run, end, calls } = await runWith(guarded, credentials);
    expect(end).toEqual({ kind: "done" });
    expect(dataOf(run)).toEqual(["in"]);
    expect(calls.map(({ headers }) => headers.authorization)).toEqual(["Bearer t1", "Bearer t2"]);
    expect(calls.map(({ headers }) => headers["last-event-id"])).toEqual(["0", "0"]);
    expect(renewals).toEqual([1]);
    expect(JSON.stringify(run.deliveries)).not.toContain("Bearer");
  });

  it("counts as rejected if the server also rejects the renewed token, and needs reauthorization if rejections persist", async () => {
    const rejecting = status("401 Unauthorized", "Content-Length: 0");
    const rejected = {
      kind: "failed",
      code: "http_401",
      isRejection: true,
      stateIfPersistent: "needsReauth",
    };
    const renewed = tokens(9);
    expect((await runWith(rejecting, renewed.credentials)).end).toMatchObject(rejected);
    expect(renewed.renewals).toEqual([1]);
    const { end, calls } = await runWith(rejecting, tokens(1).credentials);
    expect(end).toMatchObject(rejected);
    expect(calls).toHaveLength(1);
  });

  it("does not show credentials in the error message if their characters are not allowed in a header", async () => {
    const { credentials } = tokens(1);
    const authorize: Credentials["authorize"] = async (request, options) => {
      const authorized = await credentials.authorize(request, options);
      return { ...authorized, request: { ...request, headers: { authorization: "secret\nline" } } };
    };
    const { end } = await runWith(guarded, { ...credentials, authorize });
    expect(end).toMatchObject({ kind: "broken", code: "invalid_request" });
    expect(JSON.stringify(end)).not.toContain("secret");
  });

  it.each([
    [new NeedsReauthError("the grant is dead"), { kind: "needsReauth", message: "the grant is dead" }],
    [new OriginNotAllowedError("outside"), { kind: "broken", code: "origin" }],
    [new UnavailableError("secret details"), { kind: "failed", code: "unavailable" }],
    [new OutboundError("tls", "not to be trusted"), { kind: "failed", code: "tls" }],
  ])("makes no request if its credentials cannot be obtained: %s", async (error, expected) => {
    const credentials = { ...tokens(1).credentials, authorize: () => Promise.reject(error) };
    const { end, calls } = await runWith(guarded, credentials);
    expect(end).toMatchObject(expected);
    expect(JSON.stringify(end)).not.toContain("secret");
    expect(calls).toEqual([]);
  });
});
