import { describe, expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";
import type { Case } from "../vectors/verify/makers/kit.ts";
import { readVectors } from "../verify/preset-vectors.ts";

const server = opened(startHookServer);

const vectors = readVectors();

/** Sends the request of a vector. Vectors are old, so this only works for schemes without a timestamp. */
async function send(channelId: string, { request }: Case) {
  const { method = "POST", headers, body, target = "" } = request;
  const query = target.replace(/^[^?]*/, "");
  const sent = method === "GET" || method === "HEAD" ? {} : { body };
  const { status, text } = await server.send(channelId, { method, headers, query, ...sent });
  return { status, text };
}

function casesOf(preset: string) {
  const { cases = [] } = vectors.get(preset) ?? {};
  const find = (kind: Case["kind"]): Case => {
    const found = cases.find((one) => one.kind === kind);
    if (found === undefined) throw new Error(`${preset} has no vector ${kind}`);
    return found;
  };
  return { accept: find("accept"), altered: find("altered"), wrong: find("wrong secret"), all: cases };
}

describe("a channel with a provider preset", () => {
  it.each([
    "github",
    "shopify",
    "gitea",
    "line",
    "typeform",
    "gocardless",
    "razorpay",
    "telegram",
  ])("(%s) publishes a signed delivery once, and rejects a delivery that was altered or signed with another secret", async (preset) => {
    const { accept, altered, wrong } = casesOf(preset);
    const events = "events" in accept.expect ? accept.expect.events : [];
    const types = [...new Set(events.map(({ type }) => type))];
    const { id, state } = await server.open(
      { preset, secrets: accept.secrets },
      types.map((type) => ({ type })),
    );
    expect(state).toBe("active");
    const first = JSON.parse((await send(id, accept)).text);
    expect(first.events).toMatchObject(
      events.map(({ type, id: eventId }) => (eventId ? { type, id: eventId } : { type })),
    );
    if (events.every(({ id: eventId }) => eventId !== null)) {
      expect(JSON.parse((await send(id, accept)).text).duplicates).toBe(events.length);
    }
    expect((await send(id, altered)).status).toBe(401);
    expect((await send(id, wrong)).status).toBe(401);
  });

  it.each([
    "github",
    "stripe",
    "slack",
    "paypal",
    "aws-sns",
    "google-pubsub",
    "telegram",
  ])("(%s) rejects all deliveries until its secret is set", async (preset) => {
    const { id, state } = await server.open({ preset }, []);
    expect([state, (await send(id, casesOf(preset).accept)).status]).toEqual(["needsSetup", 401]);
  });

  it("(Xero) responds with an empty body to intent-to-receive handshakes and to events", async () => {
    const { accept, all } = casesOf("xero");
    const { id } = await server.open({ preset: "xero", secrets: [...accept.secrets, { value: "k" }] }, []);
    expect(await send(id, accept)).toEqual({ status: 200, text: "" });
    const intents = all.filter(({ kind }) => kind === "handshake");
    const answers = await Promise.all(intents.map((one) => send(id, one)));
    expect(answers.map(({ status }) => status)).toEqual([200, 401]);
    expect(answers[0]?.text).toBe("");
  });
});
