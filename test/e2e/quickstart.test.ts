import { it } from "vitest";
import { expectInOrder, startPastedPages } from "../support/pasted-pages.ts";

it("the pasted commands of the quickstart and quarantine pages show an event, its duplicate, and the release of fixed items", async () => {
  await using pages = await startPastedPages();
  const output = await pages.paste("quickstart.md", "quarantine.md");
  const refused = ['"quarantined":1', '"schema_mismatch"', "active"];
  expectInOrder(output, [
    '"published":1',
    '"duplicates":1',
    '"total": 12.50',
    ...refused,
    '"status":"released"',
    ...['"no_match"', '"order.updated"', "active", '"status":"released"'],
  ]);
});
