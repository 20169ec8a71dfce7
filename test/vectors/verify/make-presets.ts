/**
 * Writes the vectors of the presets: `node test/vectors/verify/make-presets.ts [name …]`.
 *
 * Each provider's scheme is written out here once more, with nothing but node:crypto and none of the engine that is tested.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
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

/** Without what ECDSA makes anew each time (a sequence of two integers, DER in base64): all else comes out the same. */
const withoutChance = (text: string): string => text.replace(/"ME[A-Z]C[A-Za-z0-9+/=]+"/g, '""');

function write(file: URL, text: string): void {
  const isSame = existsSync(file) && withoutChance(readFileSync(file, "utf8")) === withoutChance(text);
  if (!isSame) writeFileSync(file, text);
}

const wanted = process.argv.slice(2);
mkdirSync(FOLDER, { recursive: true });
for (const [preset, recipe] of Object.entries(RECIPES)) {
  if (wanted.length > 0 && !wanted.includes(preset)) continue;
  write(new URL(`${preset}.json`, FOLDER), render(preset, recipe, casesOf(recipe)));
}
