import { describe, expect, it } from "vitest";
import { topicOf } from "../../src/event/topic.ts";

const nameOf = (type: string): string =>
  topicOf({ organizationId: "org_1", appId: "app_1", channelUid: "main", type }).slice(
    "events.org_1.apps.app.event_received.app_1.main.".length,
  );

describe("a topic name", () => {
  it("contains letters and common punctuation of the event type unchanged, so that users can type the name", () => {
    for (const type of [
      "push",
      "order+created@v2",
      "заказ.создан",
      "a/b:c-d_e",
      "日本",
      "a&b=c;d,e!'\"#<>|~$()",
    ])
      expect(nameOf(type)).toBe(type);
  });

  it("percent-encodes control characters, whitespace, braces, wildcards and the percent sign of the event type", () => {
    expect(nameOf("a b\u00a0c\u2028d")).toBe("a%20b%C2%A0c%E2%80%A8d");
    expect(nameOf("{a}*?[b]\\^%")).toBe("%7Ba%7D%2A%3F%5Bb%5D%5C%5E%25");
    expect(nameOf("a\u0085b\u007f")).toBe("a%C2%85b%7F");
  });

  it("differs for two event types even if one looks like the encoded form of the other", () => {
    const types = ["a b", "a%20b", "a+b", "a%2Bb", "%", "%25"];
    expect(new Set(types.map(nameOf)).size).toBe(types.length);
  });
});
