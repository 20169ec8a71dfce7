import { expect, it } from "vitest";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { nameBlocked } from "../../src/net/name-blocked.ts";
import { OutboundError } from "../../src/net/outbound.ts";

const { signal } = new AbortController();

it("names the configured origin, the field and the setting if an address is blocked, but no path, query or resolved address", async () => {
  await using outbound = createOutbound({
    allowNetworks: [],
    lookup: (_, __, callback) => callback(null, [{ address: "10.11.12.13", family: 4 }]),
  });
  const url = "http://inner.example:8080/feed?token=hidden";
  const call = nameBlocked("`url`", url, () =>
    outbound.request({ method: "GET", url, headers: {} }, { signal }),
  );
  const error: OutboundError = await call.then(
    () => expect.unreachable(),
    (thrown) => thrown,
  );
  expect(error).toMatchObject({
    code: "blocked",
    message: expect.stringMatching(
      /^Inlet may not call http:\/\/inner\.example:8080 \(`url`\).*INLET_ALLOW_NETWORKS, such as 127\.0\.0\.0\/8/,
    ),
  });
  expect(error.message).not.toMatch(/10\.11|hidden|feed/);
});

it("keeps other errors and results", async () => {
  const refused = new OutboundError("refused", "the server does not accept connections");
  await expect(nameBlocked("`url`", "http://a/", () => Promise.reject(refused))).rejects.toBe(refused);
  const invalid = new OutboundError("blocked", "the URL must be http or https");
  await expect(nameBlocked("`url`", "not a URL", () => Promise.reject(invalid))).rejects.toBe(invalid);
  await expect(nameBlocked("`url`", "http://a/", async () => 1)).resolves.toBe(1);
});
