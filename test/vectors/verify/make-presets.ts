/**
 * Writes the vectors of the presets: `node test/vectors/verify/make-presets.ts [name …]`.
 *
 * Each provider's scheme is written out here once more, with nothing but node:crypto and none of the engine that is tested.
 * Ed25519, RSA and HMAC give the same bytes each time; ECDSA does not.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { type Case, casesOf, type Recipe } from "./makers/kit.ts";
import { billing } from "./makers/billing.ts";
import { boards } from "./makers/boards.ts";
import { chats } from "./makers/chats.ts";
import { clouds } from "./makers/clouds.ts";
import { code } from "./makers/code.ts";
import { mails } from "./makers/mails.ts";
import { media } from "./makers/media.ts";
import { payments } from "./makers/payments.ts";
import { phones } from "./makers/phones.ts";
import { shops } from "./makers/shops.ts";
import { sns } from "./makers/sns.ts";
import { standard } from "./makers/standard.ts";
import { work } from "./makers/work.ts";

const RECIPES: Readonly<Record<string, Recipe>> = {
  ...code,
  ...payments,
  ...billing,
  ...shops,
  ...chats,
  ...phones,
  ...mails,
  ...boards,
  ...work,
  ...clouds,
  "aws-sns": sns,
  ...media,
  ...standard,
};

const FOLDER = new URL("./presets/", import.meta.url);

/** One case a line: a file is read at a glance, and a change of one case is a change of one line. */
function render(preset: string, { source, fetched }: Recipe, cases: readonly Case[]): string {
  const head = { preset, source, ...(fetched ? { fetched } : {}) };
  const fields = Object.entries(head).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
  );
  const lines = cases.map((one) => `    ${JSON.stringify(one)}`);
  return `{\n${fields.join("")}  "cases": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

const wanted = process.argv.slice(2);
mkdirSync(FOLDER, { recursive: true });
for (const [preset, recipe] of Object.entries(RECIPES)) {
  if (wanted.length > 0 && !wanted.includes(preset)) continue;
  writeFileSync(new URL(`${preset}.json`, FOLDER), render(preset, recipe, casesOf(recipe)));
}
