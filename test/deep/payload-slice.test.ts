import { expect, it } from "vitest";
import { findInRandomTexts, sliceRandomTexts } from "../normalize/body/slicing.ts";

it("every value of 100,000 random texts is cut out as its own text; texts that JSON.parse refuses are refused", () => {
  const counts = sliceRandomTexts(20_240_601, 100_000);
  expect(counts.accepted).toBeGreaterThan(50_000);
  expect(counts.refused).toBeGreaterThan(20_000);
  expect(counts.slices).toBeGreaterThan(200_000);
});

it("every value of 20,000 random texts is found by its own location, with its elements", () => {
  const counts = findInRandomTexts(7, 20_000);
  expect(counts.found).toBeGreaterThan(50_000);
  expect(counts.elements).toBeGreaterThan(10_000);
});
