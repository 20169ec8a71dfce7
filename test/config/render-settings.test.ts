import { parseEnv } from "node:util";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../src/config/load.ts";
import { renderSettingsHelp } from "../../src/config/render-settings.ts";
import { SETTING_LIST } from "../../src/config/schema.ts";
import { renderExampleFile, renderSettingsTable } from "../support/generated-docs.ts";

describe("the generated lists of settings", () => {
  it("contain every setting with its default, both in --help and in the documentation", () => {
    for (const { name, description, defaultText, unsetMeans } of SETTING_LIST) {
      const row = renderSettingsTable()
        .split("\n")
        .find((line) => line.startsWith(`| \`${name}\` |`));
      expect(row).toContain(description);
      expect(row).toContain(unsetMeans ?? defaultText ?? "");
      expect(renderSettingsHelp()).toContain(
        `  ${name}${unsetMeans || defaultText ? `  [${unsetMeans ?? defaultText}]` : "\n"}`,
      );
    }
  });

  it("match the example settings file, which keeps all defaults until someone edits the file", async () => {
    await expect(renderExampleFile()).toMatchFileSnapshot("../../config/inlet.example.env");
    expect(parseEnv(renderExampleFile())).toEqual({});
  });

  it("contain only valid defaults, so that every line of the example settings file can be uncommented", () => {
    const uncommented = renderExampleFile().replace(/^#(\w+=.+)$/gm, "$1");
    expect(loadConfig(parseEnv(uncommented))).toEqual(loadConfig({}));
  });
});
