import { expect, it } from "vitest";
import { startHookServer } from "../support/hook-server.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const server = opened(startHookServer);

it("a channel with `onNoMatch: ignore` reports unmatched items as ignored, and quarantines none of them", async () => {
  const { id, appId, uid } = await server.open({ onNoMatch: "ignore" }, [{ type: "a", typePath: "$.type" }]);
  const body = '{"type":"b"}';
  const { status, text } = await server.send(id, { body });
  expect([status, JSON.parse(text)]).toMatchObject([200, { received: 1, ignored: 1, quarantined: 0 }]);
  const { get, post } = server.spine.api.call;
  expect(await get(`/apps/${appId}/quarantine`)).toEqual([]);
  const explained = await post(`/apps/${appId}/channels/${id}/explain`, { body });
  expect(explained.items).toMatchObject([{ failures: [], events: [], definitions: [{ matches: false }] }]);
  const records = (): Promise<readonly { channelUid: string; status: string; ignored: number }[]> =>
    get(`/apps/${appId}/deliveries`);
  await until(async () => (await records()).some(({ channelUid }) => channelUid === uid));
  expect(await records()).toMatchObject([{ status: "ignored", ignored: 1 }]);
});

it("a definition with `timePath`, `subjectPath` and `keyPath` sets these attributes, and counts those without a usable value", async () => {
  const paths = { timePath: "$.at", subjectPath: "$.about", keyPath: "$.customer" };
  const { id, appId } = await server.open({}, [{ type: "e", ...paths }]);
  const body = '{"at":"2025-12-31T00:00:00Z","about":"orders/7","customer":7}';
  await server.send(id, { body });
  await server.send(id, { body: '{"at":"never"}' });
  const { items } = await server.spine.api.call.post(`/apps/${appId}/channels/${id}/explain`, { body });
  expect(items[0].events[0].event).toMatchObject({
    ...{ time: "2025-12-31T00:00:00.000Z", subject: "orders/7", partitionkey: "7" },
  });
  const { values } = await server.spine.metrics.unsetAttributes.get();
  expect(values).toMatchObject([
    { labels: { kind: "webhook", attribute: "time" }, value: 1 },
    { labels: { kind: "webhook", attribute: "subject" }, value: 1 },
    { labels: { kind: "webhook", attribute: "partitionkey" }, value: 1 },
  ]);
});
