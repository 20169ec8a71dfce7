import { describe, expect, it } from "vitest";
import {
  createAgentControlRequest,
  createAgentEventRequest,
  MAX_AGENT_BODY_BYTES,
} from "../../src/event/agent-request.ts";
import type { HandlerRequest } from "../../src/event/handler-request.ts";
import { isSignedWith } from "../mcp/callback-server.ts";

const AT_MS = 1_769_851_800_000;
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString("base64")}`;
const [current, previous] = [secretOf(1), secretOf(2)];
const callback = { name: "app.in.tick", url: "https://agent.example/hook", agentId: "agent_1" };
const options = { rowId: "agt_1", cursor: "c", href: "https://inlet.example/v1/e", atMs: AT_MS } as const;

const eventOf = (data: object) => ({
  topic: "events.in.tick",
  entryId: "1769851800000-3",
  fields: ["specversion", "1.0", "id", "7", "source", "/s", "type", "tick", "data", JSON.stringify(data)],
});

const request = (data: object, messageId: "event" | "message" = "event") =>
  createAgentEventRequest(eventOf(data), { ...callback, secrets: { current } }, { ...options, messageId });

const bodyOf = ({ body }: HandlerRequest) => JSON.parse(String(body));

const signers = ({ headers, body }: HandlerRequest): readonly boolean[] =>
  [current, previous].map((secret) =>
    isSignedWith(secret, { path: "", headers, text: String(body), body: {} }),
  );

describe("the request that sends an event to an agent", () => {
  it("has the event's id as webhook-id, or an id of the message that is the same in every attempt", () => {
    expect(request({}).headers["webhook-id"]).toBe("1769851800000-3");
    const [first, second] = [request({}, "message"), request({}, "message")];
    expect(first.headers["webhook-id"]).toMatch(/^msg_agt_1_1769851800000-3_./);
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
  });

  it("contains the event up to the maximum size, and its address above it", () => {
    const room = MAX_AGENT_BODY_BYTES - String(request({ text: "" }).body).length;
    const fits = request({ text: "x".repeat(room) });
    expect(String(fits.body)).toHaveLength(MAX_AGENT_BODY_BYTES);
    expect(bodyOf(fits).data.text).toHaveLength(room);
    const { eventId, data, cursor } = bodyOf(request({ text: "x".repeat(room + 1) }));
    expect([eventId, cursor]).toEqual(["1769851800000-3", "c"]);
    expect(data).toEqual({ eventId, tooLarge: true, href: options.href });
  });

  it("counts the bytes of a text, not its characters", () => {
    expect(bodyOf(request({ text: "€".repeat(MAX_AGENT_BODY_BYTES / 3) })).data.tooLarge).toBe(true);
  });
});

it("a message to an agent is signed with the previous secret until that one expires", () => {
  const signedAt = (atMs: number) =>
    signers(
      createAgentControlRequest(
        { type: "gap", cursor: "c" },
        { ...callback, secrets: { current, previous: { secret: previous, untilMs: AT_MS } } },
        { id: "1", atMs },
      ),
    );
  expect(signedAt(AT_MS - 1)).toEqual([true, true]);
  expect(signedAt(AT_MS)).toEqual([true, false]);
});
