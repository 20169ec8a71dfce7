import { it } from "vitest";
import { expectInOrder, startPastedPages } from "../support/pasted-pages.ts";

it("the commands of the quickstart, quarantine and filter pages publish an event, detect its duplicate, release quarantined items after a fix, and ignore an item", async () => {
  await using pages = await startPastedPages();
  const output = await pages.paste("quickstart.md", "quarantine.md", "filters.md");
  const refused = ['"quarantined":1', '"schema_mismatch"', "active"];
  expectInOrder(output, [
    '"published":1',
    '"duplicates":1',
    '"total": 12.50',
    ...refused,
    '"status":"released"',
    ...['"no_match"', '"order.updated"', "active", '"status":"released"'],
    ...["path: '/item/order/total', detail: 'must be >= 10'", "active", '"ignored":1', '"published":1'],
  ]);
});
