/**
 * Writes the vectors of the presets: `node test/vectors/verify/make-presets.ts [name …]`.
 *
 * Implements each provider's scheme again with node:crypto only, independent of the tested engine.
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

/** Writes one case per line, so that the change of a case changes only one line of the file. */
function render(preset: string, { source, fetched }: Recipe, cases: readonly Case[]): string {
  const head = { preset, source, ...(fetched ? { fetched } : {}) };
  const fields = Object.entries(head).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
  );
  const lines = cases.map((vector) => `    ${JSON.stringify(vector)}`);
  return `{\n${fields.join("")}  "cases": [\n${lines.join(",\n")}\n  ]\n}\n`;
}

/** Removes ECDSA signatures (DER in base64), because they are random. Everything else is the same in each run. */
const removeRandom = (text: string): string => text.replace(/"ME[A-Z]C[A-Za-z0-9+/=]+"/g, '""');

function write(file: URL, text: string): void {
  const isSame = existsSync(file) && removeRandom(readFileSync(file, "utf8")) === removeRandom(text);
  if (!isSame) writeFileSync(file, text);
}

const names = process.argv.slice(2);
mkdirSync(FOLDER, { recursive: true });
for (const [preset, recipe] of Object.entries(RECIPES)) {
  if (names.length > 0 && !names.includes(preset)) continue;
  write(new URL(`${preset}.json`, FOLDER), render(preset, recipe, casesOf(recipe)));
}
