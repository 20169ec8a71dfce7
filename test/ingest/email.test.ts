import { describe, expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";
import { readVectors } from "../verify/preset-vectors.ts";

const server = opened(startHookServer);
const vectors = readVectors();

describe.each([
  "sendgrid-inbound",
  "mailgun-routes",
  "postmark-inbound",
  "cloudmailin",
])("a channel with the preset %s", (preset) => {
  const accepted = vectors.get(preset)?.cases.filter(({ kind }) => kind === "accept") ?? [];

  it("publishes each e-mail once with its subject and attachment, and rejects it with a wrong secret", async () => {
    for (const { request, secrets } of accepted) {
      const { id, appId } = await server.open({ preset, secrets }, []);
      const { headers, body } = request;
      const [first, again] = [
        await server.send(id, { headers, body }),
        await server.send(id, { headers, body }),
      ];
      expect([first.status, first.text, again.status]).toEqual([200, "", 200]);
      const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, {
        body,
        headers,
        verify: false,
      });
      const [event] = items[0].events;
      expect([items[0].failures, event.type, event.status]).toEqual([[], "received", "duplicate"]);
      expect(event.data).toContain("Printer");
      const other = await server.open({ preset, secrets: [{ value: secrets[0]?.value ?? "" }] }, []);
      expect(
        (await server.send(other.id, { headers: { "content-type": "application/json" }, body })).status,
      ).toBe(401);
    }
    expect(accepted.length).toBeGreaterThan(0);
  });
});

it("recognizes an e-mail of Mailgun again with another token, but not another e-mail with the same sender", async () => {
  const [testCase] = vectors.get("mailgun-routes")?.cases ?? [];
  if (testCase === undefined) throw new Error("there is no vector");
  const { id, appId } = await server.open({ preset: "mailgun-routes", secrets: testCase.secrets }, []);
  const { headers, body } = testCase.request;
  await server.send(id, { headers, body });
  const statusOf = async (text: string) => {
    const input = { body: text, headers, verify: false };
    const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, input);
    return items[0].events[0].status;
  };
  expect(await statusOf(body.replace("token=a8ce", "token=b8ce"))).toBe("duplicate");
  expect(await statusOf(body.replace("Printer", "Scanner"))).toBe("new");
});
