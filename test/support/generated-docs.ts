import { SETTING_LIST } from "../../src/config/schema.ts";
import { TOOLS } from "../../src/mcp/tools.ts";
import type { Presets } from "../../src/verify/presets.ts";

/** Renders the table of `src/docs/settings.md`. */
export function renderSettingsTable(): string {
  const rows = SETTING_LIST.map(({ name, description, unsetMeans, defaultText, secret }) => {
    const fallback = unsetMeans ?? (defaultText ? `\`${defaultText}\`` : "");
    const cells = [`\`${name}\``, fallback, description + (secret ? " Secret." : "")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| Setting | Default | Description |", "|---|---|---|", ...rows].join("\n");
}

/** Renders the table of `src/docs/agents.md`. */
export function renderToolTable(): string {
  const rows = TOOLS.map(
    ({ name, title, operation, writes = false }) =>
      `| \`${name}\` | ${title} | \`${operation}\` | ${writes ? "yes" : ""} |`,
  );
  return ["| Tool | Purpose | Operation | Changes something |", "|---|---|---|---|", ...rows].join("\n");
}

/** Renders an example settings file. All settings are commented out, so the unedited file has no effect. */
export function renderExampleFile(): string {
  const blocks = SETTING_LIST.map(({ name, description, unsetMeans, defaultText = "" }) =>
    unsetMeans
      ? `# ${description} Default: ${unsetMeans}.\n#${name}=`
      : `# ${description}\n#${name}=${defaultText}`,
  );
  return `# Settings of Inlet. Copy this file, remove the # from each setting that you change, and start with
# \`npm start -- --config FILE\`. The environment wins over the file.

${blocks.join("\n\n")}
`;
}

/** Renders the table of `src/docs/polling-presets.md`. */
export function renderStreamTable(presets: Presets): string {
  const rows = [...presets.values()].flatMap(({ preset, title, streams }) =>
    streams.map(
      ({ name, title: list, params, reconciles }) =>
        `| ${title} | \`${preset}\` | \`${name}\` | ${list} | ${Object.keys(
          (params.properties ?? {}) as object,
        )
          .map((param) => `\`${param}\``)
          .join(", ")} | ${reconciles === undefined ? "" : "yes"} |`,
    ),
  );
  const head = "| Provider | `preset` | `stream` | List | `params` | `reconciles` |";
  return [head, "|---|---|---|---|---|---|", ...rows].join("\n");
}

/** Renders the table of `src/docs/registrations.md`. */
export function renderRegistrationTable(presets: Presets): string {
  const rows = [...presets.values()].flatMap(({ preset, title, registrations }) =>
    registrations.map(({ target, title: sends, params, lifetimeSeconds }) => {
      const names = Object.keys((params.properties ?? {}) as object).map((param) => `\`${param}\``);
      const days = lifetimeSeconds === undefined ? "" : `${+(lifetimeSeconds / 86_400).toFixed(1)} days`;
      return `| ${title} | \`${preset}\` | \`${target}\` | ${sends} | ${names.join(", ")} | ${days} |`;
    }),
  );
  return [
    "| Provider | `preset` | `target` | Sends | `params` | Expires |",
    "|---|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}

/** Renders the table of `src/docs/presets.md`. */
export function renderPresetTable(presets: Presets): string {
  const rows = [...presets.values()].map(({ preset, title, verification, secret, handshakes }) =>
    [
      "",
      `[${title}](../verify/presets/${preset}.json)`,
      `\`${preset}\``,
      String(verification.scheme),
      secret?.label ?? "none",
      handshakes.length > 0 ? "yes" : "",
      "",
    ]
      .join(" | ")
      .trim(),
  );
  return [
    "| Provider | `preset` | Verified by | Secret | Handshake |",
    "|---|---|---|---|---|",
    ...rows,
  ].join("\n");
}
