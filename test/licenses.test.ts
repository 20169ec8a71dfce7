import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

/** Licenses compatible with Inlet's Apache license. */
const ALLOWED = ["MIT", "Apache-2.0", "ISC", "BSD-2-Clause", "BSD-3-Clause", "BlueOak-1.0.0", "0BSD"];

interface Locked {
  readonly dev?: boolean;
  readonly license?: string;
}

it("every production dependency has one of the allowed licenses", () => {
  const text = readFileSync(new URL("../package-lock.json", import.meta.url), "utf8");
  const { packages } = JSON.parse(text) as { readonly packages: Readonly<Record<string, Locked>> };
  const shipped = Object.entries(packages).filter(([path, { dev }]) => path !== "" && !dev);
  expect(shipped.length).toBeGreaterThan(50);
  const others = shipped.filter(([, { license = "none" }]) => !ALLOWED.includes(license));
  expect(others.map(([path, { license }]) => `${path}: ${license}`)).toEqual([]);
});
