import { expect, it } from "vitest";
import { findInRandomTexts, sliceRandomTexts } from "../normalize/body/slicing.ts";

it("every value in 100,000 random JSON texts is sliced out unchanged, and texts that JSON.parse rejects are rejected", () => {
  const counts = sliceRandomTexts(20_240_601, 100_000);
  expect(counts.accepted).toBeGreaterThan(50_000);
  expect(counts.refused).toBeGreaterThan(20_000);
  expect(counts.slices).toBeGreaterThan(200_000);
});

it("every value in 20,000 random JSON texts is found at its location, together with its elements", () => {
  const counts = findInRandomTexts(7, 20_000);
  expect(counts.found).toBeGreaterThan(50_000);
  expect(counts.elements).toBeGreaterThan(10_000);
});
