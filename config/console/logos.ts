import { globSync } from "node:fs";
import { basename, join } from "node:path";
import type { SimpleIcon } from "simple-icons";
import * as icons from "simple-icons";
import type { Plugin } from "vite";

const PRESETS = join(import.meta.dirname, "..", "..", "src", "verify", "presets");
const MODULE = "virtual:logos";

/** Names of icons that differ from the preset's name without hyphens. `undefined` if that icon shows another company. */
const NAMES: Readonly<Record<string, string | undefined>> = {
  "cal-com": "caldotcom",
  "coinbase-commerce": "coinbase",
  "docker-hub": "docker",
  loops: undefined,
  "mailgun-routes": "mailgun",
  mandrill: "mailchimp",
  "terraform-cloud": "terraform",
};

/** Returns the SVG paths of the logos by preset. Icons with a license of their own are left out. */
function readLogos(): Readonly<Record<string, string>> {
  const bySlug = new Map(
    Object.values(icons as unknown as Readonly<Record<string, SimpleIcon>>).map((icon) => [icon.slug, icon]),
  );
  const presets = globSync("*.json", { cwd: PRESETS }).map((file) => basename(file, ".json"));
  if (presets.length === 0) throw new Error(`no presets in ${PRESETS}`);
  return Object.fromEntries(
    presets.sort().flatMap((preset) => {
      const slug = preset in NAMES ? NAMES[preset] : preset.replaceAll("-", "");
      const icon = slug === undefined ? undefined : bySlug.get(slug);
      return icon === undefined || icon.license !== undefined ? [] : [[preset, icon.path]];
    }),
  );
}

/** Provides the logos of providers to the console, as the data of a module of their own. */
export const logos = (): Plugin => ({
  name: "logos",
  resolveId: (id) => (id === MODULE ? `\0${MODULE}` : undefined),
  load: (id) => (id === `\0${MODULE}` ? `export const LOGOS = ${JSON.stringify(readLogos())};` : undefined),
});
