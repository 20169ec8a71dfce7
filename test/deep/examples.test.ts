import { expect, it } from "vitest";
import { openExamples } from "../conformance/examples.ts";

it("every example of a request works in an organization that holds only the entities it names", async () => {
  await using rig = await openExamples();
  const findings: string[] = [];
  for (const operation of rig.operations) {
    const scope = await rig.newScope();
    await rig
      .tryExample(operation, scope)
      .catch(({ message }) => findings.push(`${operation.id}: ${message}`));
  }
  expect(findings).toEqual([]);
  expect(rig.operations.length).toBeGreaterThan(200);
});
