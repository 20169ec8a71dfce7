import { expect, it } from "vitest";
import { runInNewThread } from "../normalize/body/slicing-thread.ts";

it("the slicer returns every value of 100,000 random JSON texts unchanged, and rejects the texts that JSON.parse rejects", async () => {
  const counts = await runInNewThread("sliceRandomTexts", 20_240_601, 100_000);
  expect(counts.accepted).toBeGreaterThan(50_000);
  expect(counts.refused).toBeGreaterThan(20_000);
  expect(counts.slices).toBeGreaterThan(200_000);
});

it("the slicer finds every value of 20,000 random JSON texts by its path, together with its elements", async () => {
  const counts = await runInNewThread("findInRandomTexts", 7, 20_000);
  expect(counts.found).toBeGreaterThan(50_000);
  expect(counts.elements).toBeGreaterThan(10_000);
});
