import { it } from "vitest";
import { expectInOrder, startPastedPages, waitUntil } from "../support/pasted-pages.ts";

it("the commands of the quickstart, quarantine and filter pages publish an event, detect its duplicate, release quarantined items after a fix, and ignore an item", async () => {
  await using pages = await startPastedPages();
  const ignored = `npx inlet send orders --app shop --data '{"id": "0", "type": "order.created", "order": {"total": 3}}'`;
  const script = pages
    .scriptOf("quickstart.md", "quarantine.md", "filters.md")
    // A gateway may use changed definitions only after two seconds.
    .replace(
      /^npx inlet send orders .*"id": "8".*$/m,
      `${waitUntil(`${ignored} | grep -q '"ignored":1'`)}$&`,
    );
  expectInOrder(await pages.run(script), [
    ...['"step":"address"', '"eventId"'],
    ...['"published":1', '"duplicates":1', '"total":12.50'],
    ...['"quarantined":1', '"schema_mismatch"', '"state":"active"', '"status":"released"'],
    ...['"no_match"', '"order.updated"', '"state":"active"', '"status":"released"'],
    ...['{"path":"/item/order/total","detail":"must be >= 10"}', '"state":"active"'],
    ...['"ignored":1', '"published":1'],
  ]);
});
